// /Marti/api/subscriptions, /subscription, /contacts: who is on the stream right now.

import { nameKey } from '@holdfast/kit/names';
import { contact, groupsOf, rowsAmong, shownGroup } from '../groups/own-groups.ts';
import { json, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, invalid, isAdmin, wholeNumber } from '../http/route.ts';
import type { CoreCaller, KnownGroup, Subscription } from '../model/parts.ts';
import type { AdminApiOptions } from './options.ts';

const TYPE = 'SubscriptionInfo';

/** What devices may report of themselves and the core does not keep. */
const NOT_KEPT = [
  'appFramerate',
  'battery',
  'batteryStatus',
  'batteryTemp',
  'deviceDataRx',
  'deviceDataTx',
  'heapCurrentSize',
  'heapFreeSize',
  'heapMaxSize',
  'deviceIPAddress',
  'storageAvailable',
  'storageTotal',
];
const UNKNOWN_METRICS = Object.fromEntries(NOT_KEPT.map((name) => [name, '']));

export function subscriptionRoutes(options: AdminApiOptions): AdminRoute[] {
  const { subscriptions, groups: groupStore, nodeId, now } = options;

  /** An admin sees everybody; others see themselves, and those whose events reach them: through a group that both have switched on. */
  async function seenBy(caller: CoreCaller): Promise<Subscription[]> {
    const all = subscriptions.list();
    if (isAdmin(caller)) return all;
    const rows = await groupsOf(caller, options);
    const heard = rows.filter(({ direction, active }) => direction === 'OUT' && active);
    const received = new Set(heard.map(({ group }) => group.name));
    return all.filter(
      ({ username, groups }) =>
        nameKey(username) === nameKey(caller.username) ||
        groups.some(({ name, direction }) => direction === 'IN' && received.has(name)),
    );
  }

  async function infos(shown: readonly Subscription[]) {
    const known = await groupStore.ensure(shown.flatMap(({ groups }) => groups.map(({ name }) => name)));
    return shown.map((subscription) => info(subscription, known));
  }

  function info(subscription: Subscription, known: readonly KnownGroup[]) {
    const { lastReport, certificate, username, groups } = subscription;
    const lastReportMilliseconds = lastReport.getTime();
    return {
      dn: certificate.subject,
      callsign: subscription.callsign || subscription.clientUid,
      clientUid: subscription.clientUid,
      lastReportMilliseconds,
      lastReportDiffMilliseconds: now().getTime() - lastReportMilliseconds,
      takClient: subscription.takClient,
      takVersion: subscription.takVersion,
      username,
      groups: rowsAmong(known, groups, () => true).map(shownGroup),
      role: subscription.role,
      team: subscription.team,
      ipAddress: subscription.address,
      port: String(subscription.port),
      pendingWrites: subscription.pendingWrites,
      numProcessed: subscription.processed,
      protocol: subscription.protocol,
      xpath: null,
      subscriptionUid: subscription.subscriptionUid,
      ...UNKNOWN_METRICS,
      incognito: false,
      handlerType: '',
    };
  }

  async function listSubscriptions(c: AdminContext): Promise<Response> {
    const sorted = sortedAs(await seenBy(c.env.caller), c);
    const limit = wholeNumber(c, 'limit', -1, -1);
    const page = wholeNumber(c, 'page', -1, -1);
    const paged = isAdmin(c.env.caller) && limit > 0 && page > 0;
    const shown = paged ? sorted.slice((page - 1) * limit, page * limit) : sorted;
    return wrapped(TYPE, await infos(shown), nodeId);
  }

  async function readSubscription(c: AdminContext): Promise<Response> {
    const uid = c.req.param('uid');
    const found = (await seenBy(c.env.caller)).find(({ clientUid }) => clientUid === uid);
    if (found !== undefined) return wrapped(TYPE, (await infos([found]))[0], nodeId);
    return json({ version: '3', type: TYPE, nodeId }, 404);
  }

  function endSubscription(c: AdminContext): Response {
    const uid = c.req.param('uid') ?? '';
    if (!subscriptions.end(uid)) throw invalid(`nobody with the uid "${uid}" is on the stream`);
    return wrapped('String', `The connection of ${uid} is ended.`, nodeId);
  }

  const listContacts = (full: boolean) =>
    async function contacts(c: AdminContext): Promise<Response> {
      const reported = (await seenBy(c.env.caller)).filter(({ clientUid }) => clientUid !== '');
      const seen = sortedAs(reported, c);
      if (!full) return json(seen.map(contact));
      const shown = await infos(seen);
      return json(seen.map((each, index) => ({ ...shown[index], ...contact(each) })));
    };

  return [
    { path: '/Marti/api/subscriptions/all', handlers: { GET: listSubscriptions } },
    { path: '/Marti/api/subscriptions/delete/:uid', handlers: { DELETE: endSubscription } },
    { path: '/Marti/api/subscription/:uid', handlers: { GET: readSubscription } },
    { path: '/Marti/api/contacts/all', handlers: { GET: listContacts(false) } },
    { path: '/Marti/api/contacts/all/lite', handlers: { GET: listContacts(false) } },
    { path: '/Marti/api/contacts/all/full', handlers: { GET: listContacts(true) } },
  ];
}

function sortedAs(subscriptions: readonly Subscription[], c: AdminContext): Subscription[] {
  const by = c.req.query('sortBy') ?? 'CALLSIGN';
  const direction = c.req.query('direction') ?? 'ASCENDING';
  if (by !== 'CALLSIGN' && by !== 'UID') throw invalid(`sortBy must be CALLSIGN or UID, not "${by}"`);
  if (direction !== 'ASCENDING' && direction !== 'DESCENDING')
    throw invalid(`direction must be ASCENDING or DESCENDING, not "${direction}"`);
  const sign = direction === 'ASCENDING' ? 1 : -1;
  const key = (each: Subscription): string => (by === 'UID' ? each.clientUid : each.callsign || each.clientUid);
  return subscriptions.toSorted((a, b) => sign * (compare(key(a), key(b)) || compare(a.clientUid, b.clientUid)));
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
