// The stream over honest in-memory parts, and clients that speak XML with it over pipes in memory.

import { type Duplex, duplexPair } from 'node:stream';
import { AppError } from '@holdfast/kit/app-error';
import type { ThinningRow } from '@holdfast/kit/core-wire';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import type { Membership, RefusedConnection } from '../model/parts.ts';
import type {
  ArchivedEvent,
  MissionDestination,
  MissionPost,
  PlacedMembership,
  Presence,
  StreamDevice,
  StreamLimits,
} from '../model/stream.ts';
import { LargeEvents } from '../stream/large-events.ts';
import type { OtherNodes } from '../stream/other-nodes.ts';
import { Stream } from '../stream/stream.ts';
import { clientCertificate } from './fake-core-admin.ts';
import { emptyArchive } from './fake-core-archive.ts';

const NODE = 'node1';

/** `Ops` is both ways, `<Ops` receives only, `>Ops` sends only. */
export function membership(text: string): Membership[] {
  const name = text.replace(/^[<>]/, '');
  if (text.startsWith('<')) return [{ name, direction: 'OUT' }];
  if (text.startsWith('>')) return [{ name, direction: 'IN' }];
  return [
    { name, direction: 'IN' },
    { name, direction: 'OUT' },
  ];
}

/** A position report. */
export function sa(uid: string, callsign: string, input: { type?: string; detail?: string } = {}): string {
  const { type = 'a-f-G-U-C', detail = '' } = input;
  return cot(
    uid,
    type,
    `<contact callsign="${callsign}" endpoint="*:-1:stcp"/><__group name="Cyan" role="Team Member"/>` +
      `<takv device="d" platform="ATAK-CIV" os="29" version="5.3.0"/>${detail}`,
  );
}

export function cot(uid: string, type: string, detail = ''): string {
  return (
    `<event version="2.0" uid="${uid}" type="${type}" time="2026-11-22T05:00:00.000Z" start="2026-11-22T05:00:00.000Z" ` +
    `stale="2026-11-22T05:05:00.000Z" how="m-g"><point lat="1.5" lon="2.5" hae="3" ce="4" le="5"/><detail>${detail}</detail></event>`
  );
}

/** `dest` elements, each by its attributes. */
export function marti(...dests: string[]): string {
  return `<marti>${dests.map((dest) => `<dest ${dest}/>`).join('')}</marti>`;
}

/** Until nothing moves in memory any more. */
export async function settled(turns = 30): Promise<void> {
  for (let n = 0; n < turns; n++) await new Promise((resolve) => setImmediate(resolve));
}

export interface TestClient {
  say(...events: string[]): Promise<void>;
  bytes(chunk: Buffer): Promise<void>;
  /** Everything that came, without what was forgotten. */
  raw(): Buffer;
  /** The events that came, as text. */
  heard(): string[];
  /** `type uid` of each. */
  names(): string[];
  forget(): void;
  /** Stops reading. */
  rest(): void;
  leave(): Promise<void>;
  /** Closes after all that it has said. */
  close(): Promise<void>;
  readonly isOpen: boolean;
  socket: Duplex;
}

export interface CotWorldParts {
  others?: OtherNodes;
  /** Shared by the nodes of a cluster. */
  places?: Map<string, number>;
  people?: Map<string, string[] | 'closed'>;
  thinning?: readonly ThinningRow[];
  now?: () => Date;
}

export function cotWorld(limits: Partial<StreamLimits> = {}, parts: CotWorldParts = {}) {
  const people = parts.people ?? new Map<string, string[] | 'closed'>();
  const places = parts.places ?? new Map<string, number>();
  const stored: ArchivedEvent[] = [];
  const presence: { what: 'came' | 'went'; who: Presence }[] = [];
  const posts: { destination: MissionDestination; event: MissionPost }[] = [];
  const refused: RefusedConnection[] = [];
  const log = memoryLog();
  const resumes: (() => void)[] = [];
  const clock = { at: new Date('2026-11-22T05:30:00.700Z') };
  const world = {
    isDown: false,
    /** How often the groups of somebody were asked for. */
    requested: 0,
    isFull: false,
    groupsKnown: Promise.resolve(),
    subscribers: async (): Promise<StreamDevice[]> => [],
  };

  function placed(member: Membership): PlacedMembership {
    const place = places.get(member.name) ?? places.size + 2;
    places.set(member.name, place);
    return { ...member, place };
  }

  const largeEvents = new LargeEvents({ apiUrl: 'https://cot.example.org:8443', now: () => clock.at });
  const stream = new Stream(
    {
      largeEvents,
      nodeId: NODE,
      serverVersion: '5.7-RELEASE-0',
      groups: {
        async of({ commonName }) {
          world.requested++;
          const found = people.get(commonName) ?? ['__ANON__'];
          await world.groupsKnown;
          if (world.isDown) throw new AppError('unavailable', 'The directory does not answer');
          return found === 'closed' ? found : found.flatMap(membership).map(placed);
        },
        forget: () => undefined,
      },
      archive: {
        ...emptyArchive(),
        store: (event) => void stored.push(event),
        isFullFor: () => world.isFull,
        onRoom: (resume) => void resumes.push(resume),
      },
      presence: {
        came: (who) => void presence.push({ what: 'came', who }),
        went: (who) => void presence.push({ what: 'went', who }),
      },
      missions: {
        async post(destination, event) {
          posts.push({ destination, event });
          return world.subscribers();
        },
      },
      refused: (who) => void refused.push(who),
      log,
      now: parts.now ?? (() => clock.at),
      limits,
      thinning: parts.thinning ?? [],
    },
    parts.others,
  );

  /** A connection of that person. */
  async function join(username: string): Promise<TestClient> {
    const [socket, far] = duplexPair();
    const chunks: Buffer[] = [];
    let isOpen = true;
    far.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('close', () => (isOpen = false));
    const certificate = clientCertificate(username);
    stream.accepted({
      socket,
      clientAddress: '192.0.2.7',
      clientPort: 40_000,
      known: { certificate, notBefore: 0, notAfter: 1e15 },
      busy: () => undefined,
      idle: () => undefined,
    });
    await settled();
    const heard = (): string[] =>
      Buffer.concat(chunks)
        .toString()
        .split(/(?<=<\/event>)/)
        .map((text) => text.trim())
        .filter((text) => text !== '');
    const bytes = async (chunk: Buffer): Promise<void> => {
      far.write(chunk);
      await settled();
    };
    return {
      socket,
      bytes,
      heard,
      say: (...events) => bytes(Buffer.from(events.join(''))),
      raw: () => Buffer.concat(chunks),
      names: () => heard().map((text) => `${/ type="([^"]*)"/.exec(text)?.[1]} ${/ uid="([^"]*)"/.exec(text)?.[1]}`),
      forget: () => void chunks.splice(0),
      rest: () => void far.pause(),
      async close() {
        far.end();
        await settled();
        // As a socket of the system does it: the end shows although nobody reads.
        socket.read(0);
        await settled();
      },
      async leave() {
        far.destroy();
        socket.destroy();
        await settled();
      },
      get isOpen() {
        return isOpen;
      },
    };
  }

  /** On the stream with a report sent, and nothing heard yet. */
  async function report(
    username: string,
    uid = `uid-${username}`,
    callsign = username.toUpperCase(),
  ): Promise<TestClient> {
    const client = await join(username);
    await client.say(sa(uid, callsign));
    client.forget();
    return client;
  }

  return Object.assign(world, {
    stream,
    largeEvents,
    people,
    placeOf: (name: string) => places.get(name),
    stored,
    presence,
    posts,
    refused,
    log,
    clock,
    join,
    report,
    room() {
      world.isFull = false;
      for (const resume of resumes) resume();
    },
  });
}
