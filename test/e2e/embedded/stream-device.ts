// A device on the stream, for tests: TLS with its certificate, events in XML by a codec that is not
// ours.

import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import CoT, { CoTParser } from '@tak-ps/node-cot';
import type { CorePlace, Device } from './core-client.ts';
import { eventually } from './eventually.ts';

export interface StreamDevice {
  uid: string;
  /** Everything that came, in its order. */
  heard: CoT[];
  /** Until the connection has ended. */
  readonly isOpen: boolean;
  send(event: CoT): void;
  /** As it is. */
  sendText(text: string): void;
  /** Its position, with the callsign and the endpoint that make it known. */
  report(lat?: number): void;
  /** To one device. */
  chat(to: { uid: string; callsign: string }, text: string): void;
  /** Waits for an event; the first that fits. */
  hears(what: string, fits: (event: CoT) => boolean, withinMs?: number): Promise<CoT>;
  /**
   * Resolves when all that was for it until now has come: a ping is answered in the order of
   * events.
   */
  isUpToDate(): Promise<void>;
  leave(): void;
}

const EVENT = /<event[\s\S]*?<\/event>/g;
/** Longer than a whole event after what was read. */
const END = '</event>';

/**
 * Connected when it resolves; whether it is let in shows in what it hears, and in whether it stays
 * open.
 */
export async function streamDevice(
  core: CorePlace,
  { certificateFile, keyFile }: Omit<Device, 'hash'>,
  callsign: string,
): Promise<StreamDevice> {
  const { hostname, port } = new URL(core.streaming);
  const [ca, cert, key] = [`${core.directory}/certs/files/ca.pem`, certificateFile, keyFile].map((file) =>
    readFileSync(file),
  );
  const named = core.serverName === undefined ? {} : { servername: core.serverName };
  const socket = connect({ host: hostname, port: Number(port), ca, cert, key, ...named });
  const uid = `ANDROID-${callsign}`;
  const heard: CoT[] = [];
  let isOpen = true;
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    text += chunk;
    for (const [event] of text.matchAll(EVENT)) heard.push(CoTParser.from_xml(event));
    const end = text.lastIndexOf(END);
    if (end >= 0) text = text.slice(end + END.length);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => (isOpen = false));
  await connected(socket);

  const send = (event: CoT): void => void socket.write(CoTParser.to_xml(event));
  return {
    uid,
    heard,
    get isOpen() {
      return isOpen;
    },
    send,
    sendText: (given) => void socket.write(given),
    report: (lat = 47.5) => send(position(uid, callsign, lat)),
    chat: (to, message) => send(chat({ uid, callsign }, to, message)),
    async hears(what, fits, withinMs) {
      await eventually(`${callsign} hears ${what}`, () => heard.some(fits), withinMs);
      return heard.find(fits) as CoT;
    },
    async isUpToDate() {
      const answered = heard.filter(isPong).length;
      send(ping(uid));
      await eventually(`${callsign} has an answer to its ping`, () => heard.filter(isPong).length > answered);
    },
    leave: () => socket.destroy(),
  };
}

const RECONNECT_AFTER_MS = 200;
const ANSWERED_WITHIN_MS = 20_000;

/** Connects again, as devices do, until the core greets. */
export async function letIn(
  core: CorePlace,
  device: Omit<Device, 'hash'>,
  callsign: string,
  withinMs = 40_000,
): Promise<StreamDevice> {
  const until = Date.now() + withinMs;
  for (;;) {
    const stream = await streamDevice(core, device, callsign);
    const isGreeted = (): boolean => stream.heard.some((event) => event.type() === 't-x-takp-v');
    const isAnswered = (): boolean => isGreeted() || !stream.isOpen;
    await eventually(`the core answers ${callsign}`, isAnswered, ANSWERED_WITHIN_MS);
    if (isGreeted()) return stream;
    if (Date.now() > until) throw new Error(`the core didn't let ${callsign} in within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_AFTER_MS));
  }
}

/** With TLS 1.3 a refusal comes after the handshake, so this says nothing of being let in. */
async function connected(socket: TLSSocket): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.once('secureConnect', resolve);
    socket.once('close', () => resolve());
  });
}

const dates = (): { time: string; start: string; stale: string } => {
  const now = Date.now();
  const time = new Date(now).toISOString();
  return { time, start: time, stale: new Date(now + 75_000).toISOString() };
};

const NOWHERE = { lat: 0, lon: 0, hae: 0, ce: 9999999, le: 9999999 };

const isPong = (event: CoT): boolean => event.type() === 't-x-c-t-r';

function ping(uid: string): CoT {
  return new CoT({
    event: {
      _attributes: { version: '2.0', uid: `${uid}-ping`, type: 't-x-c-t', how: 'm-g', ...dates() },
      point: { _attributes: NOWHERE },
    },
  });
}

export function position(uid: string, callsign: string, lat: number): CoT {
  return new CoT({
    event: {
      _attributes: { version: '2.0', uid, type: 'a-f-G-U-C', how: 'm-g', ...dates() },
      point: { _attributes: { lat, lon: 8.25, hae: 421.5, ce: 9.9, le: 9999999 } },
      detail: {
        contact: { _attributes: { callsign, endpoint: '*:-1:stcp' } },
        __group: { _attributes: { name: 'Cyan', role: 'Team Member' } },
        takv: { _attributes: { device: 'A phone', platform: 'ATAK-CIV', os: '34', version: '5.3.0' } },
        track: { _attributes: { speed: '1.5', course: '270.0' } },
      },
    },
  });
}

function chat(from: { uid: string; callsign: string }, to: { uid: string; callsign: string }, text: string): CoT {
  const id = crypto.randomUUID();
  return new CoT({
    event: {
      _attributes: {
        version: '2.0',
        uid: `GeoChat.${from.uid}.${to.uid}.${id}`,
        type: 'b-t-f',
        how: 'h-g-i-g-o',
        ...dates(),
      },
      point: { _attributes: NOWHERE },
      detail: {
        __chat: {
          _attributes: {
            parent: 'RootContactGroup',
            groupOwner: 'false',
            messageId: id,
            chatroom: to.callsign,
            id: to.uid,
            senderCallsign: from.callsign,
          },
          chatgrp: { _attributes: { uid0: from.uid, uid1: to.uid, id: to.uid } },
        },
        link: { _attributes: { uid: from.uid, type: 'a-f-G-U-C', relation: 'p-p' } },
        remarks: {
          _attributes: { source: `BAO.F.ATAK.${from.uid}`, to: to.uid, time: new Date().toISOString() },
          _text: text,
        },
        marti: { dest: [{ _attributes: { callsign: to.callsign } }] },
      },
    },
  });
}
