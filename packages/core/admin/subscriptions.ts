// Serves /Marti/api/subscriptions, /subscription and /contacts: the clients that are connected now.

import { nameKey } from '@holdfast/kit/names';
import { contact, groupsOf, rowsAmong, toGroupView } from '../groups/own-groups.ts';
import { json, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, flag, invalid, isAdmin, wholeNumber } from '../http/route.ts';
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

export class SubscriptionRoutes {
  readonly #options: AdminApiOptions;

  constructor(options: AdminApiOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      { path: '/Marti/api/subscriptions/all', handlers: { GET: (c) => this.#listSubscriptions(c) } },
      { path: '/Marti/api/subscriptions/delete/:uid', handlers: { DELETE: (c) => this.#endSubscription(c) } },
      { path: '/Marti/api/subscription/:uid', handlers: { GET: (c) => this.#readSubscription(c) } },
      { path: '/Marti/api/contacts/all', handlers: { GET: (c) => this.#listContacts(c) } },
      { path: '/Marti/api/contacts/all/lite', handlers: { GET: (c) => this.#listContacts(c) } },
      { path: '/Marti/api/contacts/all/full', handlers: { GET: (c) => this.#listFullContacts(c) } },
    ];
  }

  /**
   * An admin sees everybody; others see themselves, and those whose events reach them: through a
   * group that both have switched on.
   */
  async #seenBy(caller: CoreCaller): Promise<Subscription[]> {
    const all = this.#options.subscriptions.list();
    if (isAdmin(caller)) return all;
    const rows = await groupsOf(caller, this.#options);
    const heard = rows.filter(({ direction, active }) => direction === 'OUT' && active);
    const received = new Set(heard.map(({ group }) => group.name));
    return all.filter(
      ({ username, groups }) =>
        nameKey(username) === nameKey(caller.username) ||
        groups.some(({ name, direction }) => direction === 'IN' && received.has(name)),
    );
  }

  async #infos(shown: readonly Subscription[]) {
    const known = await this.#options.groups.ensure(shown.flatMap(({ groups }) => groups.map(({ name }) => name)));
    return shown.map((subscription) => this.#info(subscription, known));
  }

  #info(subscription: Subscription, known: readonly KnownGroup[]) {
    const { lastReport, certificate, username, groups } = subscription;
    const { cluster } = this.#options;
    const lastReportMilliseconds = lastReport.getTime();
    return {
      dn: certificate.subject,
      callsign: subscription.callsign || subscription.clientUid,
      clientUid: subscription.clientUid,
      lastReportMilliseconds,
      lastReportDiffMilliseconds: this.#options.now().getTime() - lastReportMilliseconds,
      takClient: subscription.takClient,
      takVersion: subscription.takVersion,
      username,
      groups: rowsAmong(known, groups, () => true).map(toGroupView),
      role: subscription.role,
      team: subscription.team,
      ipAddress: subscription.address,
      port: String(subscription.port),
      pendingWrites: subscription.pendingWrites,
      numProcessed: subscription.processed,
      protocol: subscription.protocol,
      // Of our own: a release does not say them.
      framing: subscription.framing,
      ...(cluster && { node: subscription.node ?? cluster.node }),
      xpath: null,
      subscriptionUid: subscription.subscriptionUid,
      ...UNKNOWN_METRICS,
      incognito: false,
      handlerType: '',
    };
  }

  async #listSubscriptions(c: AdminContext): Promise<Response> {
    const sorted = sortedAs(await this.#seenBy(c.env.caller), c);
    const limit = wholeNumber(c, 'limit', -1, -1);
    const page = wholeNumber(c, 'page', -1, -1);
    const paged = isAdmin(c.env.caller) && limit > 0 && page > 0;
    const shown = paged ? sorted.slice((page - 1) * limit, page * limit) : sorted;
    const infos = await this.#infos(shown);
    if (!flag(c, 'positions')) return wrapped(TYPE, infos, this.#options.nodeId);
    const placed = infos.map((info, at) => ({ ...info, position: shown[at]?.position?.() ?? null }));
    return wrapped(TYPE, placed, this.#options.nodeId);
  }

  async #readSubscription(c: AdminContext): Promise<Response> {
    const uid = c.req.param('uid');
    const found = (await this.#seenBy(c.env.caller)).find(({ clientUid }) => clientUid === uid);
    if (found !== undefined) return wrapped(TYPE, (await this.#infos([found]))[0], this.#options.nodeId);
    return json({ version: '3', type: TYPE, nodeId: this.#options.nodeId }, 404);
  }

  #endSubscription(c: AdminContext): Response {
    const uid = c.req.param('uid') ?? '';
    if (!this.#options.subscriptions.end(uid)) throw invalid(`no client with the uid "${uid}" is on the stream`);
    return wrapped('String', `Disconnected ${uid}.`, this.#options.nodeId);
  }

  async #contacts(c: AdminContext): Promise<Subscription[]> {
    const reported = (await this.#seenBy(c.env.caller)).filter(({ clientUid }) => clientUid !== '');
    return sortedAs(reported, c);
  }

  async #listContacts(c: AdminContext): Promise<Response> {
    return json((await this.#contacts(c)).map(contact));
  }

  async #listFullContacts(c: AdminContext): Promise<Response> {
    const seen = await this.#contacts(c);
    const shown = await this.#infos(seen);
    return json(seen.map((each, index) => ({ ...shown[index], ...contact(each) })));
  }
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
