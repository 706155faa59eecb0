// The video relay's own configuration, against the facts of MediaMTX 1.19.3: what it opens when
// nobody says otherwise.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { COMPOSE_DIRECTORY } from '../../packages/setup/test/compose.ts';

interface User {
  user: string;
  pass: string;
  ips?: string[];
  permissions: { action: string; path?: string }[];
}

// As it is read there: no and yes are no text.
const written = parse(readFileSync(join(COMPOSE_DIRECTORY, 'video/mediamtx.yml'), 'utf8'), {
  version: '1.1',
}) as Record<string, unknown> & { authInternalUsers: User[] };

/** Every server in it. But for the first four, each is on when the file says nothing. */
const SERVERS = ['api', 'metrics', 'pprof', 'playback', 'rtsp', 'rtmp', 'hls', 'webrtc', 'srt', 'moq'];

describe('the video relay', () => {
  it('says of every server in it whether it runs', () => {
    const messages = SERVERS.filter((name) => typeof written[name] === 'boolean');
    expect(messages).toEqual(SERVERS);
    expect(messages.filter((name) => written[name])).toEqual(['api', 'rtsp', 'rtmp', 'hls']);
  });

  it('has no text where the relay wants yes or no: it would not start', () => {
    const encryptions = Object.entries(written).filter(([key]) => key.endsWith('Encryption'));
    expect(Object.fromEntries(encryptions)).toEqual({
      apiEncryption: false,
      // These two know a third state.
      rtmpEncryption: 'no',
      rtspEncryption: 'no',
    });
  });

  it('knows one who publishes and one who reads, both with a password, and management by its network', () => {
    expect(written['authMethod']).toBe('internal');
    expect(written.authInternalUsers.map(({ user, permissions }) => [user, permissions])).toEqual([
      ['publish', [{ action: 'publish' }]],
      ['read', [{ action: 'read' }]],
      ['any', [{ action: 'api' }]],
    ]);
    for (const { pass } of written.authInternalUsers.slice(0, 2)) expect(pass).toMatch(/^sha256:[A-Za-z0-9+/]{43}=$/);
    const subnets = ['compose.yaml', 'compose.test.yaml'].map(
      (name) => /video-subnet (\S+)/.exec(readFileSync(join(COMPOSE_DIRECTORY, name), 'utf8'))?.[1],
    );
    expect(written.authInternalUsers[2]).toMatchObject({ pass: '', ips: subnets });
  });
});
