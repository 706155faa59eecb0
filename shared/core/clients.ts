// Lists clients on the stream through the core's admin API, and disconnects them.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { deviceGroupName } from '@holdfast/kit/names';
import { coreDate, quoted } from './answers.ts';
import type { Core, CoreClient, CoreNotices } from './port.ts';
import { type CoreCalls, type CorePort, WITHIN_MS } from './request.ts';

export const ALL_CLIENTS = '/Marti/api/subscriptions/all';
const ENDPOINTS = '/Marti/api/clientEndPoints';
const TRIES = 10;

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');

/** A client on the stream as the core lists it. */
export const subscriptionShape = z.object({
  clientUid: text,
  subscriptionUid: text,
  callsign: text,
  username: text,
  groups: z.array(z.object({ name: z.string() })).nullish(),
  team: text,
  role: text,
  takClient: text,
  takVersion: text,
  ipAddress: text,
  lastReportMilliseconds: z.number().nullish(),
  framing: z.enum(['xml', 'protobuf']).nullish().catch(null),
  node: text,
});

export function toClient(read: z.infer<typeof subscriptionShape>): CoreClient {
  return {
    uid: read.clientUid,
    connection: read.subscriptionUid,
    callsign: read.callsign,
    username: read.username,
    groups: [...new Set((read.groups ?? []).map(({ name }) => deviceGroupName(name)))],
    team: read.team,
    role: read.role,
    device: `${read.takClient} ${read.takVersion}`.trim(),
    // A release writes a space before it.
    address: read.ipAddress.trim(),
    framing: read.framing ?? null,
    ...(read.node === '' ? {} : { node: read.node }),
    since: null,
    lastReport: timeOf(read.lastReportMilliseconds),
  };
}

const subscription = subscriptionShape.transform(toClient);
const endpoint = z.object({ uid: text, username: text, lastEventTime: text, lastStatus: text });

export function coreClients(port: CorePort): Pick<Core, 'clients' | 'disconnect' | 'endConnection'> {
  const list = (calls: CoreCalls): Promise<CoreClient[]> => calls.data(ALL_CLIENTS, z.array(subscription));

  /** Connection times by `uid` and name. */
  async function beginnings(calls: CoreCalls): Promise<Map<string, string>> {
    const found = await calls.data(ENDPOINTS, z.array(endpoint), { query: { showCurrentlyConnectedClients: 'true' } });
    const times = new Map<string, string>();
    for (const { uid, username, lastEventTime, lastStatus } of found) {
      const at = lastStatus === 'Connected' ? coreDate(lastEventTime) : undefined;
      const key = keyOf(uid, username);
      if (uid !== '' && at !== undefined && at > (times.get(key) ?? '')) times.set(key, at);
    }
    return times;
  }

  return {
    async clients() {
      const calls = port.within(WITHIN_MS);
      // Rule `sinceIsExtra`: the list of clients is useful without connection times; they are null
      // then.
      const [found, times] = await Promise.all([
        list(calls),
        beginnings(port.within(WITHIN_MS / 2)).catch(() => undefined),
      ]);
      return found.map((each) => ({ ...each, since: times?.get(keyOf(each.uid, each.username)) ?? null }));
    },

    async disconnect(uid) {
      const calls = port.within(WITHIN_MS);
      const all = uid === '' ? [] : await list(calls);
      const named = all.filter(({ connection }) => connection === uid);
      const meant = named.length > 0 ? named : all.filter((each) => each.uid === uid);
      for (const { connection, uid: device } of meant) {
        // Other devices may have chosen the same uid: they stay.
        const isShared = all.some((each) => each.uid === device && !meant.includes(each));
        await end(calls, isShared ? [connection] : [connection, device]);
      }
      // A device reconnects within seconds, under the same uid: only these connections must be
      // gone.
      const ended = new Set(meant.map(({ connection }) => connection));
      for (let tried = 0; meant.length > 0; tried += 1) {
        const left = (await list(calls)).filter(({ connection }) => ended.has(connection));
        if (left.length === 0) return true;
        if (tried === TRIES)
          throw port.wrong(`accepted the disconnection of ${uid.slice(0, 100)}, but the client is still on the stream`);
        await calls.moment();
      }
      return false;
    },

    endConnection: (connection) => end(port.within(WITHIN_MS), [connection]),
  };

  /**
   * By connection name, which is unique; else by the uid that the device reports. False: neither is
   * known (any more).
   */
  async function end(calls: CoreCalls, names: readonly string[]): Promise<boolean> {
    for (const name of names.filter((each) => each !== '')) {
      const path = `/Marti/api/subscriptions/delete/${encodeURIComponent(name)}`;
      const answer = await calls.ask('DELETE', path);
      if (answer.status === 200) return true;
      if (answer.status !== 400 && answer.status !== 404) throw port.failure(`DELETE ${path}`, answer);
    }
    return false;
  }
}

const keyOf = (uid: string, username: string): string => `${uid}\n${username}`;

/** Before the first report a release returns 0. */
function timeOf(given: number | null | undefined): string | null {
  const milliseconds = given ?? 0;
  const isTime = milliseconds > 0 && milliseconds < 8.64e15;
  return isTime ? new Date(milliseconds).toISOString() : null;
}

/** A caller is waiting for it, and the change also happens without it. */
const GROUPS_WITHIN_MS = 3_000;

/** Manages the groups of connected people through the core's admin API. */
export function coreGroups(port: CorePort): Pick<Core, 'regroup'> {
  return {
    async regroup(username) {
      const path = `/Marti/api/groups/update/${encodeURIComponent(username)}`;
      // A release answers with an empty body, also for an unknown name.
      const answer = await port.within(GROUPS_WITHIN_MS).ask('GET', path);
      if (answer.status !== 200) throw port.failure(`GET ${path}`, answer);
    },
  };
}

const NOTICES = '/Marti/api/stream/notices';
const NOTICES_WITHIN_MS = 5_000;
const MAX_BYTES = 64 * 1024;
/** The status of a core that lacks this call. */
const NO_SUCH_CALL: ReadonlySet<number> = new Set([404, 405, 501]);
const JSON_TYPE = { 'content-type': 'application/json' };

const reportSchema = z
  .object({ data: z.object({ clients: z.int().nonnegative() }) })
  .transform(({ data }) => data.clients);

/**
 * Sends a notice to every connected client through the core's admin API. Only the embedded core has
 * this call.
 */
export function coreNotices(port: CorePort): CoreNotices {
  return {
    async announce(text) {
      const calls = port.within(NOTICES_WITHIN_MS);
      const question = { headers: JSON_TYPE, body: JSON.stringify({ text }), maxBytes: MAX_BYTES };
      const answer = await calls.ask('POST', NOTICES, question);
      // Not when the core reports that it can't reach a part of itself.
      if (NO_SUCH_CALL.has(answer.status) && port.failure(NOTICES, answer).code !== 'unavailable') return undefined;
      if (answer.status === 400)
        throw new AppError('invalid', `The core did not send this notice to its clients${quoted(answer, [])}`);
      return calls.read(`POST ${NOTICES}`, answer, reportSchema);
    },
  };
}
