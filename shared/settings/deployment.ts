// Defines the variables of a deployment: its address, the limits of its containers, and its
// passwords.

import { isIpAddress } from '@holdfast/kit/addresses';
import {
  listOf,
  memorySize,
  oneOf,
  reachableHost,
  secretText,
  text,
  url,
  visibleSecret,
  wholeNumber,
} from './kinds.ts';
import { optional, withDefault } from './setting.ts';

const printable = /^[\x20-\x7e]{1,1024}$/;
const databasePassword = secretText('1 to 1024 printable ASCII characters', printable);
const longSecret = secretText('32 to 1024 printable ASCII characters without spaces', /^[\x21-\x7e]{32,1024}$/);
/** As a URL and the video relay's configuration accept it without quoting. */
const streamPassword = secretText('letters, digits and . _ -', /^[A-Za-z0-9._-]{1,256}$/);
/** As certificates allow it, and as the release's own scripts pass it to openssl. */
const nameInCertificates = text(
  '1 to 64 letters (without accents), digits, spaces and . _ -',
  /^(?=.{1,64}$)[A-Za-z0-9._-]+( +[A-Za-z0-9._-]+)*$/,
);

/** Its origin goes into the content security policy. */
const tileUrl = text(
  'a URL with {z}, {x} and {y}, such as https://tile.example.org/{z}/{x}/{y}.png',
  /^(?=.*\{z\})(?=.*\{x\})(?=.*\{y\})(?=.{1,500}$)https?:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?\/[\w.~!$&()*+=:@%?{}/-]*$/,
);

/** Sections `deployment` and `secrets`. */
export const DEPLOYMENT_SETTINGS = {
  SERVER_ADDRESS: optional(reachableHost(), {
    section: 'deployment',
    about:
      'Name or address that devices use to reach this server (embedded default: 127.0.0.1 or the --listen address)',
    example: 'cot.example.org',
  }),
  PUBLIC_ADDRESSES: optional(listOf('addresses', isIpAddress), {
    section: 'deployment',
    about: 'Addresses that lead to this machine although none of its interfaces has them (behind NAT)',
    example: '198.51.100.7',
  }),
  DEPLOY_MODE: optional(oneOf('direct', 'subdomain'), {
    section: 'deployment',
    about: 'subdomain: public certificates and host names at the reverse proxy; direct: our own CA on one address',
    example: 'subdomain',
  }),
  MAP_TILE_URL: optional(tileUrl, {
    section: 'deployment',
    about: 'Tiles of the Map page, which browsers load from there; outlines alone while unset',
    example: 'https://tile.openstreetmap.org/{z}/{x}/{y}.png',
  }),
  PROXY_HTTPS_PORT: withDefault(wholeNumber(1, 65535), '443', {
    section: 'deployment',
    about: 'Port of HTTPS at the reverse proxy that TRUSTED_PROXIES names, where health checks it (containers only)',
  }),
  CORE_ENROLLMENT_PORT: withDefault(wholeNumber(1, 65535), '8446', {
    section: 'deployment',
    about: 'Port on which devices enroll',
  }),
  CORE_RELEASE: optional(text('a release such as 5.7-RELEASE-8', /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/), {
    section: 'deployment',
    about: 'TAK Server release that the images are built from (written by setup.sh; unset in the light stack)',
    example: '5.7-RELEASE-8',
  }),
  CORE_NODE: optional(wholeNumber(1, 9), {
    section: 'deployment',
    about: 'Number of this core node of several, unset for a core of its own (containers only)',
    example: '2',
  }),
  MANAGEMENT_REPLICA: optional(wholeNumber(1, 9), {
    section: 'deployment',
    about: 'Number of this management process of several that share DATA_DIR, unset for the first (containers only)',
    example: '2',
  }),
  NATS_URL: optional(url('tls'), {
    section: 'places',
    about: 'NATS server over which several core nodes exchange events (containers only)',
    example: 'tls://nats:4222',
  }),
  NATS_CA_FILE: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: "CA of the NATS server's certificate, PEM; unset: the stack's own, which node 1 issues it with",
    example: '/etc/nats-ca/ca.pem',
  }),
  CORE_MEMORY: withDefault(memorySize(1024), '4g', {
    section: 'deployment',
    about: 'Memory limit of the core; a release derives its heaps from it (containers only)',
  }),
  CORE_DATABASE_MEMORY: withDefault(memorySize(512), '2g', {
    section: 'deployment',
    about: "Memory limit of the core's database (containers only)",
  }),
  CERTIFICATE_COUNTRY: withDefault(text('two capital letters, such as AT', /^[A-Z]{2}$/), 'XX', {
    section: 'deployment',
    about: 'Country in the certificates of a release',
  }),
  CERTIFICATE_STATE: withDefault(nameInCertificates, 'none', {
    section: 'deployment',
    about: 'State in the certificates that the scripts of a release make',
  }),
  CERTIFICATE_CITY: withDefault(nameInCertificates, 'none', {
    section: 'deployment',
    about: 'City in the certificates that the scripts of a release make',
  }),
  CERTIFICATE_ORGANIZATION: withDefault(nameInCertificates, 'Holdfast', {
    section: 'deployment',
    about: 'Organization (O) in the certificates of a release, its devices included',
  }),
  CERTIFICATE_UNIT: withDefault(nameInCertificates, 'CoT', {
    section: 'deployment',
    about: 'Organizational unit (OU) in the certificates of a release, its devices included',
  }),
  COMPOSE_FILE: optional(text('a colon-separated list of files', /^[^\p{Cc}:]+(:[^\p{Cc}:]+)*$/u), {
    section: 'deployment',
    about: 'Compose files, each layered over the one before',
    example: 'compose/compose.yaml:compose/compose.local.yaml',
  }),
  CORE_DB_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: 'Password of the core database owner (martiuser)',
    example: 'generated',
  }),
  CORE_READER_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: 'Password of the role that reads the core database for health and history (holdfast_ro)',
    example: 'generated',
  }),
  APP_DB_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: 'Password of the owner of our own database (holdfast)',
    example: 'generated',
  }),
  IDENTITY_DB_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: "Password of the owner of the identity provider's database (identity)",
    example: 'generated',
  }),
  IDENTITY_SECRET_KEY: optional(longSecret, {
    section: 'secrets',
    about: "Key that seals the identity provider's tokens; changing it makes them useless",
    example: 'generated',
  }),
  LDAP_BIND_PASSWORD: optional(secretText(), {
    section: 'secrets',
    about: 'Password of the LDAP service account (adm_ldapservice)',
    example: 'generated',
  }),
  CORE_WEBADMIN_PASSWORD: optional(secretText(), {
    section: 'secrets',
    about: 'Password of the first administrator (webadmin)',
    example: 'generated',
  }),
  AUDIT_KEY: optional(visibleSecret, {
    section: 'secrets',
    about: 'Key that chains the audit log; kept outside the database',
    example: 'generated',
  }),
  SESSION_KEY: optional(visibleSecret, {
    section: 'secrets',
    about: 'Key that signs session cookies and API tokens; changing it ends all of them',
    example: 'generated',
  }),
  FLOWS_DB_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: 'Password of the role that lets flows read named tables of the core database (holdfast_flows)',
    example: 'generated',
  }),
  FLOWS_TOKEN: optional(longSecret, {
    section: 'secrets',
    about:
      'Secret with which the reverse proxy vouches for a signed-in person at the flow engine; keep it from everyone else',
    example: 'generated',
  }),
  FLOWS_CREDENTIAL_KEY: optional(longSecret, {
    section: 'secrets',
    about: 'Key that seals the credentials in flows; changing it makes them useless',
    example: 'generated',
  }),
  FLOWS_PASSWORD: optional(secretText(), {
    section: 'secrets',
    about: "Password of the flow engine's own sign-in (admin) in the embedded stack",
    example: 'generated',
  }),
  VIDEO_PUBLISH_PASSWORD: optional(streamPassword, {
    section: 'secrets',
    about: 'Password for publishing video at the relay',
    example: 'generated',
  }),
  VIDEO_READ_PASSWORD: optional(streamPassword, {
    section: 'secrets',
    about: 'Password for reading video from the relay',
    example: 'generated',
  }),
  NATS_PASSWORD: optional(streamPassword, {
    section: 'secrets',
    about: 'Password of the core nodes (user core) at the NATS server',
    example: 'generated',
  }),
  IDENTITY_BOOTSTRAP_TOKEN: optional(visibleSecret, {
    section: 'secrets',
    about: "API token of authentik's first start, used to set it up",
    example: 'generated',
  }),
  IDENTITY_ADMIN_PASSWORD: optional(secretText(), {
    section: 'secrets',
    about: "Password of authentik's own administrator (akadmin), set at its first start",
    example: 'generated',
  }),
} as const;
