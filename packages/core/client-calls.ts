// Lists every call that open clients make, by client, and what the light core answers. The table of
// docs/clients.md is made from it; a test drives the calls and compares them with the routes.

export interface ClientCall {
  area: string;
  /** Method and path as it is routed. */
  call: string;
  clients: readonly Client[];
  answer: 'served' | 'not served';
  /** What drives it in the tests. */
  checked: 'node-tak' | 'tests' | 'no';
  note?: string;
}

export const CLIENTS = ['ATAK', 'TAK Aware', 'iTAK', 'WinTAK', 'WebTAK', 'CloudTAK', 'node-tak', 'PyTAK'] as const;
export type Client = (typeof CLIENTS)[number];

type Row = [call: string, clients: string, checked?: ClientCall['checked'], note?: string];

const SHORT: Record<string, Client> = {
  A: 'ATAK',
  T: 'TAK Aware',
  i: 'iTAK',
  W: 'WinTAK',
  B: 'WebTAK',
  C: 'CloudTAK',
  n: 'node-tak',
  P: 'PyTAK',
};
const API = '/Marti/api';
/** In place of a method: a connection that carries the stream. */
export const WEBSOCKET = 'WebSocket';
const MISSION = `${API}/missions/:name`;

function area(name: string, answer: ClientCall['answer'], rows: readonly Row[]): ClientCall[] {
  return rows.map(([call, clients, checked = 'tests', note]) => ({
    area: name,
    call,
    clients: clients.split('').flatMap((letter) => SHORT[letter] ?? []),
    answer,
    checked,
    ...(note === undefined ? {} : { note }),
  }));
}

const ENROLLMENT = area('enrollment (8446)', 'served', [
  [`GET ${API}/tls/config`, 'ATCnP', 'node-tak'],
  [`POST ${API}/tls/signClient/v2`, 'ATCnP', 'node-tak'],
  [`POST ${API}/tls/signClient`, 'AP'],
  [`GET ${API}/tls/profile/enrollment`, 'Ai'],
  [`GET ${API}/tls/profile/tool/:tool/file`, 'A'],
  ['POST /oauth/token', 'BCn', 'node-tak'],
]);

const BASICS = area('basics', 'served', [
  ['GET /files/api/config', 'Cn', 'node-tak'],
  [`GET ${API}/version`, 'A'],
  [`GET ${API}/version/config`, 'A'],
  [`GET ${API}/clientEndPoints`, 'ACn', 'node-tak'],
  [`GET ${API}/contacts/all`, 'Cn', 'node-tak'],
  [`GET ${API}/subscriptions/all`, 'Cn', 'node-tak'],
  [`GET ${API}/util/user/roles`, 'B'],
  [`GET ${API}/device/profile/connection`, 'An', 'node-tak'],
  [`GET ${API}/device/profile/tool/:tool`, 'A'],
  [`POST ${API}/device/profile/:name/send`, 'B', 'tests', 'administrators'],
  [`GET ${API}/device/profile/:name/missionpackage`, 'A'],
  [`GET ${API}/groups/all`, 'ATCn', 'node-tak'],
  [`PUT ${API}/groups/active`, 'ACn', 'node-tak'],
  [`PUT ${API}/groups/activebits`, 'T'],
  [`GET ${API}/groups/groupCacheEnabled`, 'WB'],
  [`GET ${API}/certadmin/cert`, 'Cn', 'node-tak', 'administrators'],
  [`DELETE ${API}/certadmin/cert/:hash`, 'Cn', 'tests', 'administrators'],
  [`GET ${API}/security/config`, 'n', 'node-tak', 'administrators; without passwords'],
  [`GET ${API}/security/verifyConfig`, 'n', 'node-tak', 'administrators'],
  [`GET ${API}/security/isSecure`, 'n', 'node-tak', 'administrators'],
  [`GET ${API}/authentication/config`, 'n', 'node-tak', 'administrators; without the password'],
]);

const FILES = area('files', 'served', [
  ['GET /Marti/sync/search', 'ACn', 'node-tak'],
  [`GET ${API}/sync/search`, 'n', 'node-tak'],
  ['GET /Marti/sync/:hash/metadata', 'n', 'node-tak'],
  ['GET /Marti/sync/content', 'ACn', 'node-tak'],
  ['GET /Marti/sync/missionquery', 'A'],
  ['POST /Marti/sync/missionupload', 'ACn', 'node-tak'],
  ['POST /Marti/sync/upload', 'iCn', 'node-tak'],
  [`PUT ${API}/sync/metadata/:hash/:what`, 'ACn'],
  [`GET ${API}/files/metadata`, 'TC'],
  [`GET ${API}/files/metadata/count`, 'n', 'node-tak'],
  [`GET ${API}/files/:hash`, 'T'],
  [`DELETE ${API}/files/:hash`, 'Cn', 'node-tak'],
  ['DELETE /Marti/sync/delete', 'Cn', 'node-tak'],
]);

const MISSIONS = area('missions', 'served', [
  [`GET ${API}/missions`, 'ATCn', 'node-tak'],
  [`GET ${MISSION}`, 'ATCn', 'node-tak', 'by guid too, as most calls of missions'],
  [`PUT ${MISSION}`, 'AC'],
  [`POST ${MISSION}`, 'Cn', 'node-tak'],
  [`DELETE ${MISSION}`, 'ACn', 'node-tak'],
  [`GET ${MISSION}/token`, 'T'],
  [`PUT ${MISSION}/password`, 'A'],
  [`DELETE ${MISSION}/password`, 'A'],
  [`GET ${MISSION}/subscription`, 'ACn', 'node-tak'],
  [`PUT ${MISSION}/subscription`, 'ATCn', 'node-tak'],
  [`DELETE ${MISSION}/subscription`, 'ATCn', 'node-tak'],
  [`GET ${MISSION}/subscriptions`, 'n', 'node-tak'],
  [`GET ${MISSION}/subscriptions/roles`, 'ACn', 'node-tak'],
  [`GET ${MISSION}/role`, 'ACn', 'node-tak'],
  [`PUT ${MISSION}/role`, 'ACn', 'node-tak'],
  [`GET ${MISSION}/contacts`, 'n', 'node-tak'],
  [`GET ${MISSION}/cot`, 'ATCn', 'node-tak'],
  [`GET ${MISSION}/changes`, 'ACn', 'node-tak'],
  [`PUT ${MISSION}/contents`, 'ACn', 'node-tak'],
  [`DELETE ${MISSION}/contents`, 'ACn', 'node-tak'],
  [`PUT ${MISSION}/contents/missionpackage`, 'WCn', 'node-tak'],
  [`GET ${MISSION}/archive`, 'Cn', 'node-tak'],
  [`GET ${MISSION}/kml`, 'B'],
  [`PUT ${MISSION}/keywords`, 'An', 'node-tak'],
  [`GET ${API}/missions/invitations`, 'ACn', 'node-tak'],
  [`GET ${MISSION}/invitations`, 'ACn', 'node-tak'],
  [`PUT ${MISSION}/invite/:type/:invitee`, 'ACn', 'node-tak'],
  [`DELETE ${MISSION}/invite/:type/:invitee`, 'ACn', 'node-tak'],
  [`POST ${MISSION}/invite`, 'A'],
  [`GET ${MISSION}/log`, 'AC'],
  [`POST ${API}/missions/logs/entries`, 'ACn', 'node-tak'],
  [`PUT ${API}/missions/logs/entries`, 'ACn', 'node-tak'],
  [`GET ${API}/missions/logs/entries/:id`, 'n', 'node-tak'],
  [`DELETE ${API}/missions/logs/entries/:id`, 'ACn', 'node-tak'],
  [`GET ${MISSION}/layers`, 'BCn', 'node-tak'],
  [`PUT ${MISSION}/layers`, 'BCn', 'node-tak'],
  [`PUT ${MISSION}/layers/:layer/name`, 'BCn', 'node-tak'],
  [`PUT ${MISSION}/layers/parent`, 'BCn'],
  [`DELETE ${MISSION}/layers`, 'BCn', 'node-tak'],
  [`GET ${MISSION}/children`, 'n'],
  [`PUT ${MISSION}/parent/:parent`, 'n'],
  [`POST ${MISSION}/externaldata`, 'WB'],
  [`POST ${MISSION}/feed`, 'WB', 'tests', 'kept and shown; the light core has no data feeds'],
  [`POST ${MISSION}/maplayers`, 'WB'],
]);

const REPORTS = area('reports and updates', 'served', [
  ['POST /Marti/ErrorLog', 'A'],
  [`GET ${API}/citrap`, 'AB'],
  [`POST ${API}/citrap`, 'AB'],
  [`GET ${API}/citrap/:id`, 'AB'],
  [`PUT ${API}/citrap/:id`, 'AB'],
  [`DELETE ${API}/citrap/:id`, 'AB'],
  [`POST ${API}/citrap/:id/attachment`, 'AB'],
  ['GET /update/product.infz', 'A'],
  ['GET /update/product.inf', 'A'],
  ['GET /update/:file', 'A'],
]);

const HISTORY = area('history', 'served', [
  [`GET ${API}/cot/xml/:uid`, 'ACn', 'node-tak'],
  [`GET ${API}/cot/xml/:uid/all`, 'ACn', 'node-tak'],
  [`GET ${API}/cot/sa`, 'P'],
  ['POST /Marti/ExportMissionKML', 'ACn', 'node-tak'],
  ['POST /Marti/TracksKML', 'A'],
  ['POST /locate/api', 'n', 'node-tak'],
]);

const OTHER = area('video and stream', 'served', [
  ['GET /Marti/vcm', 'AW'],
  ['POST /Marti/vcm', 'AW'],
  [`GET ${API}/video`, 'iCn', 'node-tak'],
  [`POST ${API}/video`, 'Cn', 'node-tak'],
  [`GET ${API}/video/:uid`, 'Cn', 'node-tak'],
  [`PUT ${API}/video/:uid`, 'Cn', 'node-tak'],
  [`DELETE ${API}/video/:uid`, 'Cn', 'node-tak'],
  [`GET ${API}/injectors/cot/uid`, 'CnP', 'node-tak', 'administrators'],
  [`GET ${API}/injectors/cot/uid/:uid`, 'Cn', 'node-tak', 'administrators'],
  [`POST ${API}/injectors/cot/uid`, 'CnP', 'node-tak', 'administrators'],
  [`DELETE ${API}/injectors/cot/uid`, 'CnP', 'node-tak', 'administrators'],
  [`GET ${API}/repeater/list`, 'Cn', 'node-tak', 'administrators'],
  [`GET ${API}/repeater/period`, 'Cn', 'node-tak', 'administrators'],
  [`GET ${API}/repeater/remove/:uid`, 'Cn', 'node-tak', 'administrators'],
  [`GET ${API}/iconset/all/uid`, 'n', 'node-tak', 'files with the tool `iconset`'],
  [`POST ${API}/iconset`, 'B'],
  [`${WEBSOCKET} /takproto/1`, 'BP', 'tests', 'with a client certificate, on 8443'],
  [`GET ${API}/plugins/info/all`, 'B', 'tests', 'empty: the light core runs no plugins'],
]);

const NOT_SERVED = area('other', 'not served', [
  [`${WEBSOCKET} /takproto/1 with a token`, 'B', 'no', '8446; the pages of WebTAK are a part of a release'],
]);

export const CLIENT_CALLS: readonly ClientCall[] = [
  ...ENROLLMENT,
  ...BASICS,
  ...FILES,
  ...MISSIONS,
  ...HISTORY,
  ...OTHER,
  ...REPORTS,
  ...NOT_SERVED,
];

/** The table of docs/clients.md. */
export function renderClientCalls(): string {
  const rows = CLIENT_CALLS.map(({ area: of, call, clients, answer, checked, note = '' }) => {
    const by = { 'node-tak': 'node-tak', tests: 'own tests', no: '' }[checked];
    return `| ${of} | \`${call}\` | ${clients.join(', ')} | ${answer} | ${by} | ${note} |`;
  });
  return ['| Area | Call | Clients | Light core | Driven by | Note |', '|---|---|---|---|---|---|', ...rows].join('\n');
}
