// Serves /Marti/api/clientEndPoints: every client that was ever on the stream, and whether it is
// connected.

import { visiblePlacesNamed } from '../groups/own-groups.ts';
import { certificateDate, wrapped } from '../http/answers.ts';
import { KeptAnswers } from '../http/kept-answers.ts';
import { type AdminContext, type AdminRoute, flag, wholeNumber } from '../http/route.ts';
import type { ClientEndpoint } from '../store/presence.ts';
import type { AdminApiOptions } from './options.ts';

const KEPT_MS = 5_000;
/** Each may be megabytes, and any device can ask for as many seconds as it likes. */
const MAX_KEPT = 20;

export function clientRoutes(options: AdminApiOptions): AdminRoute[] {
  const { endpoints, nodeId, now } = options;
  /** The same question within 5 s gets the same answer. */
  const kept = new KeptAnswers<ClientEndpoint[]>({ keptMs: KEPT_MS, most: MAX_KEPT, now });

  async function listEndpoints(c: AdminContext): Promise<Response> {
    const secondsAgo = wholeNumber(c, 'secAgo', 0, 0);
    const connectedOnly = flag(c, 'showCurrentlyConnectedClients');
    const newestOnly = flag(c, 'showMostRecentOnly');
    const groups = await visiblePlacesNamed(c.env.caller, c.req.queries('group') ?? [], options);
    const since = secondsAgo === 0 ? undefined : secondsBefore(now(), secondsAgo);
    const key = JSON.stringify([secondsAgo, connectedOnly, newestOnly, groups]);
    const found = await kept.ask(key, () => endpoints.list({ groups, since, connectedOnly, newestOnly }));
    return wrapped('com.bbn.marti.remote.ClientEndpoint', found.map(shown), nodeId);
  }

  return [{ path: '/Marti/api/clientEndPoints', handlers: { GET: listEndpoints } }];
}

/** As far back as a date of the database can lie. */
function secondsBefore(date: Date, seconds: number): Date {
  return new Date(Math.max(0, date.getTime() - seconds * 1000));
}

/** Devices read every member as text. */
function shown({ callsign, uid, username, team, role, lastEventTime, lastStatus }: ClientEndpoint) {
  return {
    callsign: callsign ?? '',
    uid: uid ?? '',
    username: username ?? '',
    team: team ?? '',
    role: role ?? '',
    lastEventTime: certificateDate(lastEventTime),
    lastStatus,
  };
}
