// The command line tools of OpenLDAP, which know nothing of our code.

import { spawn, spawnSync } from 'node:child_process';
import { type Outcome, outcomeOf } from './embedded.ts';

/** Installed by .ci/run; tests that need them are skipped where they are missing. */
export const hasLdapTools = spawnSync('ldapwhoami', ['-VV'], { stdio: 'ignore' }).error === undefined;

/** Who to bind as. */
export interface Binder {
  dn: string;
  password: string;
}

const environment = { PATH: process.env['PATH'] ?? '', LDAPNOINIT: '1' };

async function ask(tool: string, url: string, { dn, password }: Binder, args: string[]): Promise<Outcome> {
  const all = ['-x', '-H', url, '-D', dn, '-w', password, '-o', 'nettimeout=10', ...args];
  return outcomeOf(spawn(tool, all, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] }));
}

/** `ldapwhoami`: exit code and what it printed. */
export const ldapWhoAmI = (url: string, binder: Binder): Promise<Outcome> => ask('ldapwhoami', url, binder, []);

/** `ldapsearch -LLL` with lines that are not folded. */
export const ldapSearch = (url: string, binder: Binder, args: string[]): Promise<Outcome> =>
  ask('ldapsearch', url, binder, ['-LLL', '-o', 'ldif-wrap=no', ...args]);
