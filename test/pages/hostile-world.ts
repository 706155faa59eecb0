// A world in which everything that others may name has the name of your choice, and a reader of pages that takes nothing
// which we did not write.

import type { Account } from '../../shared/identity/port.ts';
import { alertsHolding } from '../alerts/fake-alerts.ts';
import { atDay, history, table } from '../health/fake-monitored.ts';
import type { FakeIdentity } from '../identity/fake-identity.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

export interface HostileWorld extends PeopleWorld {
  /** Of every page there is something to see at. */
  paths: string[];
}

const PLAIN = (
  '/ /people /groups /devices /profiles /video /certificates /plugins /alerts /audit /logs /jobs /service-accounts /settings /tokens /database ' +
  '/database/vacuum /database/runs /database/retention /account /lockouts /more /add-device /guides /people/new ' +
  '/health/database /health/autovacuum'
).split(' ');

/** Outside systems, devices and whoever tries to sign in say `text` wherever they may. */
export async function hostileWorld(text: string): Promise<HostileWorld> {
  const world = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org', ENROLLMENT_TTL_MINUTES: '15' });
  const { deps, around } = world;
  const { theCore, identity } = deps;
  const ada = await world.account({ username: 'ada', groups: ['core_Odd'] });
  const odd = await world.account({ username: 'odd', groups: ['core_Odd'] });
  const group = await identity.groups.named('core_Odd');
  disguise(identity, text);
  theCore.clients.push(
    { ...theCore.online('ada', text), callsign: text, groups: [text], team: text, role: text, device: text },
    { ...theCore.online(text, ''), address: text },
  );
  const certificates = [theCore.enrolledByDevice('ada', text), theCore.enrolledByDevice(text, text)];
  theCore.plugins = [{ name: text, description: text, version: text, enabled: true, started: false, error: text }];
  const { all } = deps.contents;
  all.profiles = [{ id: 1, name: text, active: true, type: 'Tool', tool: text, groups: [text], updatedAt: null }];
  all.files.set(text, [{ id: 2, name: text, text }]);
  all.feeds = [{ uid: text, name: text, urls: [text], active: true, groups: [] }];
  all.packages = [
    { hash: text, name: text, packageName: text, version: text, pluginApi: text, bytes: 1, addedAt: null },
  ];
  const sent = {
    callsign: text,
    username: text,
    platform: text,
    version: text,
    bytes: 1,
    at: around.now.toISOString(),
  };
  all.logs = [{ id: 3, uid: text, ...sent }];
  const refused = { at: around.now.toISOString(), address: text, username: 'ada', clientUid: text, reason: text };
  theCore.attempts = [{ ...refused, result: 'refused' }];
  around.tables = [table(text, 10_000, 5000)];
  const raised = { raised_at: atDay(-1), since: atDay(-1), next_attempt_at: null, attempts: 1 };
  const delivery = {
    channel: 'email',
    recipient: 'duty@example.org',
    accepted: false,
    detail: text,
    at: atDay(-1),
  } as const;
  const alert = { id: text, module: 'disk', level: 'warning', message: text } as const;
  deps.alerts = alertsHolding([
    {
      ...alert,
      details: [text],
      remedies: [text],
      ...raised,
      state: 'failed',
      reason: text,
      sent_at: null,
      deliveries: [delivery],
    },
  ]);
  const actor = { username: text, address: text, requestId: text };
  await deps.audit.note({ actor, action: text, target: text }, 'ok', { [text]: text, deep: { [text]: [text] } });
  deps.logFiles = {
    names: async () => ['management', text],
    tail: async () => [text, JSON.stringify({ at: atDay(-1), level: 'error', event: text, [text]: text })],
  };
  const job = '00000000-0000-4000-8000-000000000001';
  const input = {
    mode: 'full',
    intent: 1,
    tables: [{ schema: text, table: text, bytes: 1, dead_tuples: 1, lock_seconds: 1 }],
  };
  await deps.opsJobs.add({ id: job, kind: 'vacuum', actor: text, input, now: atDay(-1) });
  await deps.opsJobs.change(job, { log: [`${atDay(-1)} ${text}`], state: 'failed', error: text });
  for (const module of ['database', 'disk', 'probe', 'autovacuum', 'tls'])
    await deps.health.put({
      ...history(),
      module,
      status: 'critical',
      message: text,
      details: [text],
      remedies: [text],
      updated_at: atDay(0),
      data: { [text]: text, list: [{ [text]: text }], stages: [{ stage: 'bind', ok: false, error: text }] },
      shouldAlert: false,
    });
  const people = [ada, odd].flatMap(({ id }) => [`/people/${id}`, `/people/${id}/enrollment?check=1`]);
  const query = `search=${encodeURIComponent(text.toWellFormed())}`;
  const paths = [
    ...people,
    ...certificates.map(({ hash }) => `/certificates/${hash.replaceAll(':', '').toLowerCase()}`),
    `/groups/${group?.id}`,
    `/jobs/${job}`,
    `/logs?name=${encodeURIComponent(text.toWellFormed())}&${query}`,
    `/people/new?name=${encodeURIComponent(text.toWellFormed())}`,
    ...['/people', '/devices', '/certificates'].map((path) => `${path}?${query}&done=${query}&page=2`),
    ...['actor', 'action', 'target', 'since'].map(
      (name) => `/audit?${name}=${encodeURIComponent(text.toWellFormed())}`,
    ),
    ...PLAIN,
  ];
  return { ...world, paths };
}

/** The provider says `text` for the people `ada` and `odd` and for the group `core_Odd`. */
function disguise({ accounts, groups }: FakeIdentity, text: string): void {
  const real = { accounts: { ...accounts }, groups: { ...groups } };
  const disguised = <T extends { name: string }>(group: T): T =>
    group.name === 'core_Odd' ? { ...group, name: `core_${text}` } : group;
  const seen = (account: Account): Account => ({
    ...account,
    groups: account.groups.map(disguised),
    ...(['ada', 'odd'].includes(account.username) ? { name: text, email: text } : {}),
    ...(account.username === 'odd' ? { username: text } : {}),
  });
  const maybe = (account: Account | undefined): Account | undefined => account && seen(account);
  accounts.get = async (id) => maybe(await real.accounts.get(id));
  accounts.named = async (name) => maybe(await real.accounts.named(name));
  accounts.list = async (query) => {
    const { search } = query;
    const found = await real.accounts.list({
      ...query,
      page: 1,
      search: search === undefined || search === text ? '' : search,
    });
    return { ...found, results: found.results.map(seen) };
  };
  groups.get = async (id) => {
    const found = await real.groups.get(id);
    return found && disguised(found);
  };
  groups.list = async (prefix) => (await real.groups.list(prefix)).map(disguised);
}

const ELEMENTS = new Set(
  (
    'html head meta title link script body a header footer main nav section div span p h1 h2 h3 ul ol li dl dt dd table caption thead ' +
    'tbody tr th td form label input select option button canvas fieldset legend details summary strong small b code time bdi br noscript ' +
    'svg g path circle rect line polyline polygon text abbr em pre kbd progress meter textarea hr datalist output figure figcaption optgroup'
  ).split(' '),
);
const TAG = /<(\/?)([a-z][a-z0-9]*)((?: [A-Za-z][\w:-]*(?:="[^"<>]*")?)*) ?\/?>/y;
const TEXT = /(?:[^<>&]|&(?:amp|lt|gt|quot|#39|#\d+);)+/y;
const SAFE_LINK =
  /^(?:\/(?![/\\])|#|\?|tak:\/\/|mailto:|data:,|data:application\/x-pkcs12|https:\/\/(?:monitor\.)?cot\.example\.org\/)/;

/** What is wrong in the HTML of a page: markup that is no markup of ours, and attributes that run or lead elsewhere. */
export function faultsOf(html: string): string[] {
  const faults: string[] = [];
  let at = '<!doctype html>'.length;
  const rest = (): string => JSON.stringify(html.slice(Math.max(0, at - 60), at + 80));
  if (!html.startsWith('<!doctype html>')) return ['no doctype'];
  while (at < html.length) {
    const pattern = html[at] === '<' ? TAG : TEXT;
    pattern.lastIndex = at;
    const found = pattern.exec(html);
    if (found === null) return [...faults, `neither text nor a tag: ${rest()}`];
    at = pattern.lastIndex;
    if (pattern === TEXT) continue;
    const [, , name = '', attributes = ''] = found;
    if (!ELEMENTS.has(name)) faults.push(`an element <${name}>`);
    for (const [, key = '', value = ''] of attributes.matchAll(/ ([A-Za-z][\w:-]*)(?:="([^"]*)")?/g)) {
      if (/^on|^style$|^srcdoc$|^formaction$/i.test(key)) faults.push(`an attribute ${key}`);
      if (['href', 'src', 'action', 'data-live'].includes(key) && value !== 'self' && !SAFE_LINK.test(value))
        faults.push(`${key}="${value}"`);
    }
  }
  const odd = html.replaceAll(/[\n\r\t]/g, '').match(/[\p{Cc}\p{Cs}\p{Bidi_Control}\u00AD\u200B\u2060\uFEFF]/u);
  if (odd !== null) faults.push(`${JSON.stringify(odd[0])}, which hides something`);
  return faults;
}
