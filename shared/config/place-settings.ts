// The variables that say where each part stands.

import { optional, withDefault } from './setting.ts';
import {
  distinguishedName,
  hostNameOrAddress,
  keyedUrl,
  secretUrl,
  text,
  url,
  urlOrOff,
  visibleSecret,
  wholeNumber,
} from './setting-kinds.ts';

/** Section `places`. */
export const PLACE_SETTINGS = {
  UPDATES_URL: withDefault(urlOrOff('https', 'http'), 'https://endoflife.date/api', {
    section: 'places',
    about: 'Where newer releases of PostgreSQL and Node.js are looked up once in six hours; off: nowhere',
  }),
  RESEND_URL: withDefault(keyedUrl(), 'https://api.resend.com', {
    section: 'places',
    about: 'Where Resend is asked to send e-mail',
  }),
  TWILIO_URL: withDefault(keyedUrl(), 'https://api.twilio.com', {
    section: 'places',
    about: 'Where Twilio is asked to send SMS (a region has an address of its own)',
  }),
  BREVO_URL: withDefault(keyedUrl(), 'https://api.brevo.com', {
    section: 'places',
    about: 'Where Brevo is asked to send SMS',
  }),
  DATABASE_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'Our own database (holdfast), as its owner',
    example: 'postgres://holdfast:password@127.0.0.1:5432/holdfast',
  }),
  CORE_DATABASE_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'The database of the core (cot), as a role that may read it and has pg_monitor',
    example: 'postgres://holdfast_ro:password@127.0.0.1:5432/cot',
  }),
  CORE_DATABASE_OWNER_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'The same database as its owner, for vacuum alone',
    example: 'postgres://martiuser:password@127.0.0.1:5432/cot',
  }),
  CORE_DATABASE_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory of that database (PGDATA) as this machine sees it, for the room on its disk',
    example: '/var/lib/postgresql/data',
  }),
  CORE_API_URL: optional(url('https'), {
    section: 'places',
    about: 'Admin API of the core',
    example: 'https://takserver:8443',
  }),
  CORE_ENROLLMENT_URL: optional(url('https'), {
    section: 'places',
    about: 'Enrollment of the core',
    example: 'https://takserver:8446',
  }),
  CORE_STREAMING_URL: optional(url('tls'), {
    section: 'places',
    about: 'CoT stream of the core',
    example: 'tls://takserver:8089',
  }),
  CORE_DATA_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory with the files of the core',
    example: '/opt/tak',
  }),
  IDENTITY_URL: optional(url('https', 'http'), {
    section: 'places',
    about: 'HTTP API of the identity provider',
    example: 'http://authentik-server:9000',
  }),
  IDENTITY_TOKEN: optional(visibleSecret, {
    section: 'places',
    about: 'API token at the identity provider',
    example: 'from the identity provider',
  }),
  LDAP_URL: optional(url('ldap', 'ldaps'), {
    section: 'places',
    about: 'Directory that checks passwords',
    example: 'ldap://authentik-ldap:3389',
  }),
  LDAP_BASE_DN: optional(distinguishedName(), {
    section: 'places',
    about: 'Base of the directory for the core',
    example: 'DC=core,DC=holdfast',
  }),
  LDAP_WEB_BASE_DN: optional(distinguishedName(), {
    section: 'places',
    about:
      'Base of the directory for our own sign-in, where app passwords do not count (default DC=web beside LDAP_BASE_DN)',
    example: 'DC=web,DC=holdfast',
  }),
  CONTAINER_RUNTIME_URL: optional(url('unix', 'http', 'https', 'tcp'), {
    section: 'places',
    about: 'Container runtime, read only; container health is left out while unset',
    example: 'unix:///run/docker.sock',
  }),
  LISTEN_ADDRESS: withDefault(hostNameOrAddress(), '127.0.0.1', {
    section: 'places',
    about: 'Address on which console, portal and API listen (embedded: 127.0.0.1, and --listen over TLS)',
  }),
  API_PORT: withDefault(wholeNumber(1, 65535), '8080', {
    section: 'places',
    about: 'Port of the API and the console (embedded: 8080 plus --offset)',
  }),
  PORTAL_PORT: withDefault(wholeNumber(1, 65535), '3000', {
    section: 'places',
    about: 'Port of the portal, which serves the same API (embedded: 3000 plus --offset)',
  }),
  DATA_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory for files of our own, such as alerts while the database is away',
    example: '/var/lib/holdfast',
  }),
  LOG_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory whose *.log files /api/logs shows',
    example: '/var/log/holdfast',
  }),
} as const;
