// Runs the embedded identity provider (HTTP API and LDAP) as a process, until SIGTERM or SIGINT or
// until its supervisor is gone.

import { setTimeout as delay } from 'node:timers/promises';
import { ensureProvider } from '@holdfast/identity/bootstrap';
import { takeIdentityHandover } from '@holdfast/identity/handover';
import { createIdentityApi } from '@holdfast/identity/http/app';
import { createLdapServer } from '@holdfast/identity/ldap/server';
import { IDENTITY_MIGRATIONS } from '@holdfast/identity/store/migrations/index';
import { identityStore } from '@holdfast/identity/store/store';
import { messageOf } from '@holdfast/kit/app-error';
import { LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { type JsonLog, jsonLog } from '@holdfast/kit/log';
import { migrate } from '@holdfast/kit/migrate';
import { forgetPostgresVariables, withAwaitedDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { LISTENING, runService, stopInOrder, tellSupervisor } from '@holdfast/kit/service';
import { MINUTE_MS } from '@holdfast/kit/time';
import { serveApp } from '../../shared/runtime/node-server.ts';

/** The authentik release whose API this provider implements. */
const API_RELEASE = '2026.8.3';
const MIGRATED_WITHIN_MS = 60_000;
const SWEEP_EVERY_MS = 5 * MINUTE_MS;
const GRACE_MS = 4_000;

/** Returns at once; the provider runs until it is stopped. */
export function runIdentity(environment: NodeJS.ProcessEnv): void {
  const log = jsonLog({ role: 'identity' });
  runService(log, 'identity', () => serve(environment, log));
}

async function serve(environment: NodeJS.ProcessEnv, log: JsonLog): Promise<void> {
  forgetPostgresVariables(environment);
  const handover = takeIdentityHandover(environment);
  const [url, secretKey] = [new Secret(handover.databaseUrl), new Secret(handover.secretKey)];
  const now = (): Date => new Date();
  await withAwaitedDatabase(log, url, 'identity-start', MIGRATED_WITHIN_MS, (sql) => migrate(sql, IDENTITY_MIGRATIONS));
  const run = keptDatabase(url, {
    name: 'identity',
    called: 'the database of the identity provider',
    variable: 'its URL',
  });
  const wrote = await ensureProvider({ run, secretKey, apiToken: new Secret(handover.apiToken) });
  const store = identityStore({ run, secretKey, now, log });
  const api = createIdentityApi({ store, now, log, release: API_RELEASE });
  const { address, httpPort, ldapPort, bases } = handover;
  const searchPassword = handover.searchPassword === undefined ? undefined : new Secret(handover.searchPassword);
  const server = await serveApp(async (request) => api.fetch(request), [{ address, port: httpPort }], log);
  const { roster, checkPassword } = store;
  const ldap = createLdapServer({
    roster,
    checkPassword,
    bases,
    searchAccount: LDAP_SERVICE_ACCOUNT,
    searchPassword,
    log,
  });
  await ldap.listen(ldapPort, address);
  tellSupervisor(LISTENING);
  log.info('identity.listening', { address, http_port: httpPort, ldap_port: ldapPort, bases, accounts_made: wrote });
  const stopSweeping = sweepRegularly((at) => store.sweep(at), log);
  stopInOrder(log, 'identity', () => {
    stopSweeping();
    const ended = Promise.all([server.close(GRACE_MS), ldap.close(GRACE_MS)]).then(() => store.settled());
    return Promise.race([ended, delay(2 * GRACE_MS)]);
  });
}

/** Deletes tokens that expired long ago, now and every few minutes. */
function sweepRegularly(sweep: (now: Date) => Promise<number>, log: JsonLog): () => void {
  const once = (): void => {
    sweep(new Date()).then(
      (deleted) => {
        if (deleted > 0) log.info('identity.tokens_swept', { deleted });
      },
      (error: unknown) => log.warn('identity.sweep_failed', { error: messageOf(error) }),
    );
  };
  once();
  const timer = setInterval(once, SWEEP_EVERY_MS);
  return () => clearInterval(timer);
}
