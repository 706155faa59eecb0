// Facts about authentik 2026.8, from its API schema (the package @goauthentik/api of that release)
// and its public sources: which members the models of our blueprint have, what may stand in them,
// and by which of them an entry is found.

import { Tagged } from '../../packages/setup/test/blueprint.ts';

type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === 'string' && value !== '';
const flag: Check = (value) => typeof value === 'boolean';
const number: Check = (value) => typeof value === 'number' && Number.isInteger(value);
const among =
  (...words: string[]): Check =>
  (value) =>
    typeof value === 'string' && words.includes(value);
const everyOne =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every(check);
const object: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
/** `!KeyOf` an entry of one of these models, or `!Find` in it. */
const referenceTo =
  (...models: string[]): Check & { models?: string[] } =>
  (value) =>
    value instanceof Tagged &&
    (value.tag === 'KeyOf' || (value.tag === 'Find' && models.includes(String(value.args[0]))));
const fromEnvironment: Check = (value) => value instanceof Tagged && value.tag === 'Env';
const either =
  (...checks: Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));

export interface Model {
  members: Record<string, Check>;
  /** Of a new one, in identifiers or attrs. */
  needed: string[];
  identifiers: string[];
}

const named = (members: Model['members'], ...needed: string[]): Model => ({
  members: { name: text, ...members },
  needed: ['name', ...needed],
  identifiers: ['name'],
});

const LDAP_MODE = among('direct', 'cached');
const DURATION: Check = (value) => text(value) && /^(?:seconds|minutes|hours|days|weeks)=\d+$/.test(String(value));

export const MODELS: Record<string, Model> = {
  'authentik_blueprints.metaapplyblueprint': {
    members: { identifiers: object, required: flag },
    needed: ['identifiers', 'required'],
    identifiers: [],
  },
  'authentik_flows.flow': {
    members: {
      name: text,
      slug: text,
      title: text,
      designation: among(
        'authentication',
        'authorization',
        'invalidation',
        'enrollment',
        'unenrollment',
        'recovery',
        'stage_configuration',
      ),
      authentication: among(
        'none',
        'require_authenticated',
        'require_unauthenticated',
        'require_superuser',
        'require_redirect',
        'require_outpost',
        'require_token',
      ),
    },
    needed: ['name', 'slug', 'title', 'designation'],
    identifiers: ['slug'],
  },
  'authentik_stages_identification.identificationstage': named({
    user_fields: everyOne(among('email', 'username', 'upn')),
    case_insensitive_matching: flag,
    show_matched_user: flag,
    pretend_user_exists: flag,
    password_stage: referenceTo('authentik_stages_password.passwordstage'),
  }),
  'authentik_stages_password.passwordstage': named(
    {
      backends: everyOne(
        among(
          'authentik.core.auth.InbuiltBackend',
          'authentik.core.auth.TokenBackend',
          'authentik.sources.ldap.auth.LDAPBackend',
          'authentik.sources.kerberos.auth.KerberosBackend',
        ),
      ),
      configure_flow: referenceTo('authentik_flows.flow'),
      failed_attempts_before_cancel: number,
      allow_show_password: flag,
    },
    'backends',
  ),
  'authentik_stages_user_login.userloginstage': named({
    session_duration: DURATION,
    terminate_other_sessions: flag,
    remember_me_offset: DURATION,
    remember_device: DURATION,
    network_binding: among('no_binding', 'bind_asn', 'bind_asn_network', 'bind_asn_network_ip'),
    geoip_binding: among('no_binding', 'bind_continent', 'bind_continent_country', 'bind_continent_country_city'),
  }),
  'authentik_flows.flowstagebinding': {
    members: {
      target: referenceTo('authentik_flows.flow'),
      stage: referenceTo(),
      order: number,
      evaluate_on_plan: flag,
      re_evaluate_policies: flag,
      policy_engine_mode: among('all', 'any'),
      invalid_response_action: among('retry', 'restart', 'restart_with_context'),
    },
    needed: ['target', 'stage', 'order'],
    identifiers: ['target', 'stage', 'order'],
  },
  'authentik_core.user': {
    members: {
      username: text,
      name: text,
      type: among('internal', 'external', 'service_account'),
      path: (value) => text(value) && !/^\/|\/$|\/\//.test(String(value)),
      is_active: flag,
      email: text,
      attributes: object,
      groups: everyOne(referenceTo('authentik_core.group')),
      roles: everyOne(referenceTo('authentik_rbac.role')),
      password: fromEnvironment,
    },
    needed: ['username', 'name'],
    identifiers: ['username'],
  },
  'authentik_core.group': named({
    is_superuser: flag,
    users: everyOne(referenceTo('authentik_core.user')),
    roles: everyOne(referenceTo('authentik_rbac.role')),
    attributes: object,
  }),
  'authentik_rbac.role': named({}),
  'authentik_providers_ldap.ldapprovider': named(
    {
      authorization_flow: referenceTo('authentik_flows.flow'),
      authentication_flow: referenceTo('authentik_flows.flow'),
      invalidation_flow: referenceTo('authentik_flows.flow'),
      base_dn: either(text, fromEnvironment),
      bind_mode: LDAP_MODE,
      search_mode: LDAP_MODE,
      mfa_support: flag,
      uid_start_number: number,
      gid_start_number: number,
      tls_server_name: text,
    },
    'authorization_flow',
    'invalidation_flow',
  ),
  'authentik_core.application': {
    members: {
      name: text,
      slug: (value) => text(value) && /^[-a-zA-Z0-9_]+$/.test(String(value)),
      provider: referenceTo('authentik_providers_ldap.ldapprovider'),
      meta_hide: flag,
      policy_engine_mode: among('all', 'any'),
    },
    needed: ['name', 'slug'],
    identifiers: ['slug'],
  },
  'authentik_outposts.outpost': named(
    {
      type: among('proxy', 'ldap', 'radius', 'rac'),
      providers: everyOne(referenceTo('authentik_providers_ldap.ldapprovider')),
      config: object,
    },
    'type',
    'providers',
    'config',
  ),
  'authentik_core.token': {
    members: {
      identifier: (value) => text(value) && /^[-a-zA-Z0-9_]+$/.test(String(value)),
      user: referenceTo('authentik_core.user'),
      intent: among('api', 'app_password'),
      key: fromEnvironment,
      expiring: flag,
      description: text,
    },
    // Without a request, as in a blueprint, the serializer wants both.
    needed: ['identifier', 'user', 'intent'],
    identifiers: ['identifier'],
  },
};

/** What an outpost's configuration may hold of what concerns one that compose runs. */
export const OUTPOST_CONFIG = [
  'authentik_host',
  'authentik_host_insecure',
  'authentik_host_browser',
  'log_level',
  'refresh_interval',
];
/** Of blueprints that come with authentik and that ours builds on. */
export const DEFAULT_BLUEPRINTS = ['Default - Invalidation flow', 'Default - Provider invalidation flow'];
export const DEFAULT_FLOWS = ['default-invalidation-flow', 'default-provider-invalidation-flow'];
/** By their whole names, as the worker takes them. */
export const PERMISSIONS = ['authentik_providers_ldap.search_full_directory'];
