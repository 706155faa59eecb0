// The blueprint that authentik gets, held to what is known of authentik, and to what the stack
// needs of it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CORE_BASE, LDAP_SERVICE_ACCOUNT, webBaseBeside } from '@holdfast/kit/directory';
import { PROVIDER_ADMINS } from '@holdfast/kit/names';
import {
  DEFAULT_BLUEPRINTS,
  DEFAULT_FLOWS,
  MODELS,
  OUTPOST_CONFIG,
  PERMISSIONS,
} from '../../../test/compose/authentik-models.ts';
import { BLUEPRINT, MANAGEMENT_TOKEN, OUTPOST } from '../identity/setup.ts';
import { type BlueprintEntry, readBlueprint, Tagged, valuesIn } from './blueprint.ts';
import { COMPOSE_DIRECTORY, readComposeFile, type Service } from './compose.ts';

const path = join(COMPOSE_DIRECTORY, 'identity/blueprints/holdfast.yaml');
const { version, metadata, entries } = readBlueprint(path);
const called = ({ model, identifiers }: BlueprintEntry): string => `${model} ${JSON.stringify(identifiers ?? {})}`;
const of = (model: string): BlueprintEntry[] => entries.filter((entry) => entry.model === model);
const one = (model: string, identifiers: Record<string, unknown>): BlueprintEntry => {
  const found = of(model).filter((entry) =>
    Object.entries(identifiers).every(([name, value]) => entry.identifiers?.[name] === value),
  );
  expect([model, identifiers, found.length]).toEqual([model, identifiers, 1]);
  return found[0] as BlueprintEntry;
};
const keyOf = (id: string): Tagged => new Tagged('KeyOf', [id]);
const everyValue = (): unknown[] => entries.flatMap((entry) => [...valuesIn(entry)]);
const tagged = (tag: string): Tagged[] =>
  everyValue().filter((value): value is Tagged => value instanceof Tagged && value.tag === tag);

describe('the blueprint', () => {
  it('is of the version that authentik reads, stands where identity-setup looks for it, and is called after the stack', () => {
    expect([version, metadata.name]).toEqual([1, 'Holdfast']);
    expect(BLUEPRINT).toBe('holdfast/holdfast.yaml');
  });

  it.each(entries.map((entry) => [called(entry), entry] as const))('%s is as its model wants it', (_, entry) => {
    const model = MODELS[entry.model];
    expect(model).toBeDefined();
    const { members = {}, needed = [], identifiers = [] } = model ?? {};
    const all = { ...entry.identifiers, ...entry.attrs };
    expect(Object.keys(all).filter((name) => members[name]?.(all[name]) !== true)).toEqual([]);
    expect(needed.filter((name) => all[name] === undefined)).toEqual([]);
    expect(Object.keys(entry.identifiers ?? {})).toEqual(identifiers);
    expect(['present', 'created', undefined]).toContain(entry.state);
    const known = ['model', 'id', 'state', 'identifiers', 'attrs', 'permissions'];
    expect(Object.keys(entry).filter((name) => !known.includes(name))).toEqual([]);
  });

  it('refers to entries that come before, by names that are given once, each of the model that is wanted there', () => {
    const ids = entries.flatMap(({ id }) => id ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    const modelOf = new Map<unknown, string>();
    for (const entry of entries) {
      const references = [...valuesIn(entry)].filter((value) => value instanceof Tagged && value.tag === 'KeyOf');
      for (const { args } of references as Tagged[])
        expect([called(entry), args[0], modelOf.has(args[0])]).toEqual([called(entry), args[0], true]);
      const ofModel = (model: RegExp, ...values: unknown[]): void => {
        for (const value of values.flat())
          if (value instanceof Tagged && value.tag === 'KeyOf')
            expect([called(entry), modelOf.get(value.args[0])]).toEqual([called(entry), expect.stringMatching(model)]);
      };
      const { target, stage } = entry.identifiers ?? {};
      const { groups, roles, users, user, provider, providers, authorization_flow: flow } = entry.attrs ?? {};
      ofModel(/\.flow$/, target, flow);
      ofModel(/^authentik_stages_/, stage);
      ofModel(/\.group$/, groups);
      ofModel(/\.role$/, roles, ...(entry.permissions ?? []).map(({ role }) => role));
      ofModel(/\.user$/, users, user);
      ofModel(/\.ldapprovider$/, provider, providers);
      if (entry.id !== undefined) modelOf.set(entry.id, entry.model);
    }
    expect(tagged('KeyOf').length).toBeGreaterThan(20);
  });

  it('finds what comes with authentik, and applies the blueprint of it first', () => {
    const [first] = entries;
    expect(first?.attrs).toEqual({ identifiers: { name: expect.toBeOneOf(DEFAULT_BLUEPRINTS) }, required: true });
    const slugs = tagged('Find').map(({ args: [model, condition] }) => [model, condition]);
    expect(slugs.length).toBeGreaterThan(0);
    for (const [model, condition] of slugs)
      expect([model, condition]).toEqual(['authentik_flows.flow', ['slug', expect.toBeOneOf(DEFAULT_FLOWS)]]);
  });

  it('holds no secret: they come from the environment of the worker, and all that it asks for is given there', () => {
    const text = readFileSync(path, 'utf8').replaceAll(/^\s*#.*$/gm, '');
    expect([...text.matchAll(/^\s*(?:password|key): (\S+)/gm)].map(([, value]) => value)).toEqual(['!Env', '!Env']);
    const requested = new Set(tagged('Env').map(({ args }) => String(args[0])));
    expect([...requested].toSorted()).toEqual([
      'IDENTITY_TOKEN',
      'LDAP_BASE_DN',
      'LDAP_BIND_PASSWORD',
      'LDAP_WEB_BASE_DN',
    ]);
    const { services } = readComposeFile('compose.yaml') as unknown as { services: Record<string, Partial<Service>> };
    const given = Object.keys(services['authentik-worker']?.environment ?? {});
    expect([...requested].filter((name) => !given.includes(name))).toEqual([]);
    const toServer = Object.keys(services['authentik-server']?.environment ?? {});
    expect([...requested].filter((name) => toServer.includes(name))).toEqual([]);
  });
});

describe('the directories of the blueprint', () => {
  const flows = [
    ['core', 'holdfast-bind-core', ['authentik.core.auth.InbuiltBackend', 'authentik.core.auth.TokenBackend']],
    ['web', 'holdfast-bind-web', ['authentik.core.auth.InbuiltBackend']],
  ] as const;

  it.each(flows)(
    '%s: a bind identifies, asks for the password and signs in; app passwords count at the core alone',
    (base, slug, backends) => {
      const { id = '', attrs } = one('authentik_flows.flow', { slug });
      expect(attrs).toMatchObject({ designation: 'authentication', authentication: 'none' });
      const bound = of('authentik_flows.flowstagebinding')
        .map(({ identifiers }) => identifiers ?? {})
        .filter(({ target }) => target instanceof Tagged && target.args[0] === id);
      expect(bound.map(({ order }) => order)).toEqual([10, 20, 30]);
      const stages = bound.map(({ stage }) => entries.find((entry) => entry.id === (stage as Tagged).args[0]));
      expect(stages.map((stage) => stage?.model)).toEqual([
        'authentik_stages_identification.identificationstage',
        'authentik_stages_password.passwordstage',
        'authentik_stages_user_login.userloginstage',
      ]);
      expect(stages[0]?.attrs).toEqual({ user_fields: ['username'], case_insensitive_matching: true });
      expect(stages[1]?.attrs).toEqual({ backends });
      expect(stages[2]?.attrs).toMatchObject({ terminate_other_sessions: false });
      expect(one('authentik_providers_ldap.ldapprovider', { name: `Holdfast ${base} directory` }).attrs).toMatchObject({
        authorization_flow: keyOf(id),
      });
    },
  );

  it('bind and search at authentik each time, with the bases that all others take when none is set', () => {
    const bases = { core: ['LDAP_BASE_DN', CORE_BASE], web: ['LDAP_WEB_BASE_DN', webBaseBeside(CORE_BASE)] };
    for (const [base, args] of Object.entries(bases))
      expect(one('authentik_providers_ldap.ldapprovider', { name: `Holdfast ${base} directory` }).attrs).toMatchObject({
        base_dn: new Tagged('Env', args),
        bind_mode: 'direct',
        search_mode: 'direct',
        mfa_support: false,
        uid_start_number: 2000,
        gid_start_number: 4000,
      });
  });

  it('are searched as a whole by the service account, through a role, by the whole name of the permission', () => {
    const role = one('authentik_rbac.role', { name: 'Holdfast directory reader' });
    for (const { permissions } of of('authentik_providers_ldap.ldapprovider'))
      expect(permissions).toEqual([{ permission: PERMISSIONS[0], role: keyOf(role.id ?? '') }]);
    const account = one('authentik_core.user', { username: LDAP_SERVICE_ACCOUNT });
    // Later runs must not set its password back to that of the first.
    expect([account.state, account.attrs?.['type'], account.attrs?.['path']]).toEqual([
      'created',
      'service_account',
      'users',
    ]);
    expect(one('authentik_core.group', { name: 'holdfast_directory_readers' }).attrs).toEqual({
      roles: [keyOf(role.id ?? '')],
      users: [keyOf(account.id ?? '')],
    });
  });

  it('are both served by one outpost, each by an application that lets everybody bind', () => {
    const [core = '', web = ''] = of('authentik_providers_ldap.ldapprovider').map(({ id }) => id);
    const outposts = of('authentik_outposts.outpost');
    expect(
      outposts.map(({ identifiers, attrs }) => [identifiers?.['name'], attrs?.['type'], attrs?.['providers']]),
    ).toEqual([[OUTPOST, 'ldap', [keyOf(core), keyOf(web)]]]);
    const config = outposts[0]?.attrs?.['config'] as Record<string, unknown>;
    expect(config['authentik_host']).toBe('http://authentik-server:9000');
    expect(Object.keys(config).filter((name) => !OUTPOST_CONFIG.includes(name))).toEqual([]);
    expect(of('authentik_core.application').map(({ attrs }) => attrs?.['provider'])).toEqual([keyOf(core), keyOf(web)]);
    expect(entries.filter(({ model }) => model.startsWith('authentik_policies'))).toEqual([]);
  });
});

it('the account of management is a superuser through the group of authentik, and its key is that of the settings for good', () => {
  const administrators = one('authentik_core.group', { name: PROVIDER_ADMINS });
  expect([administrators.state, administrators.attrs]).toEqual(['created', { is_superuser: true }]);
  const account = one('authentik_core.user', { username: 'adm_holdfast' });
  expect(account.attrs).toMatchObject({ type: 'service_account', groups: [keyOf(administrators.id ?? '')] });
  expect(account.attrs).not.toHaveProperty('password');
  expect(one('authentik_core.token', { identifier: MANAGEMENT_TOKEN }).attrs).toMatchObject({
    user: keyOf(account.id ?? ''),
    intent: 'api',
    key: new Tagged('Env', ['IDENTITY_TOKEN']),
    expiring: false,
  });
});
