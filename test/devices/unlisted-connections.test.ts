import { expect, it } from 'vitest';
import { loggedConnections } from '../../shared/devices/connections/unlisted.ts';

// As TAK Server 5.7-RELEASE-14 writes them.
const manager = (words: string): string =>
  `2026-11-23-20:17:52.230 [CallsignAssignmentExecutor-0] INFO c.b.m.s.DistributedSubscriptionManager - ${words}`;
const identified = (connection: string, callsign: string, uid: string): string =>
  manager(`Set client for subscription: ${connection} to ${callsign} (${uid}) source=10.0.0.9:49588`);

it('knows who reported and did not end', () => {
  const lines = [
    manager('Added Subscription: id=tls:1201 source=172.16.64.130'),
    identified('tls:1202', 'JACK', 'ANDROID-1'),
    identified('tls:1203', 'KATE (2) to X', 'ANDROID-2'),
    manager('Removed Subscription: tls:1201'),
    manager('Removed Subscription: tls:1202'),
    manager('Set client for subscription: tls:1204 to OLD (ANDROID-3)'),
    manager(' unable to set callsign for clientUid: ANDROID-4 to NOBODY (ANDROID-4) - cannot find subscription'),
  ];
  expect(loggedConnections(lines)).toEqual([
    { connection: 'tls:1203', callsign: 'KATE (2) to X', uid: 'ANDROID-2' },
    { connection: 'tls:1204', callsign: 'OLD', uid: 'ANDROID-3' },
  ]);
});

it('forgets the connections of a process that has ended', () => {
  const lines = [
    identified('tls:7', 'JACK', 'ANDROID-1'),
    '2026-11-23-19:56:33.992 [main] INFO tak.server.ServerConfiguration - Started TAK Server messaging Microservice.',
    identified('tls:2', 'KATE', 'ANDROID-2'),
  ];
  expect(loggedConnections(lines).map(({ connection }) => connection)).toEqual(['tls:2']);
});
