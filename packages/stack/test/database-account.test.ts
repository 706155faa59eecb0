// Who runs PostgreSQL when root starts the stack, and what is said when nobody can.

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { databaseAccount } from '../database/account.ts';

const made: string[] = [];

afterEach(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** A program in place of initdb, that does this. */
function place(script: string): { initdb: string; workplace: string; pgdata: string } {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-account-'));
  made.push(directory);
  chmodSync(directory, 0o755);
  const [initdb, workplace] = [join(directory, 'initdb'), join(directory, 'data')];
  writeFileSync(initdb, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  mkdirSync(workplace);
  return { initdb, workplace, pgdata: join(workplace, 'pgdata') };
}

describe.runIf(process.getuid?.() === 0)('the account of PostgreSQL under root', () => {
  it('is an unprivileged one', () => {
    const { initdb, workplace, pgdata } = place('test "$(id -u)" = 65534');
    expect(databaseAccount(pgdata, initdb, workplace).command('true', [])).toMatchObject({ uid: 65534 });
  });

  it('is refused with what PostgreSQL itself says, and no directory is blamed that is open', () => {
    const { initdb, workplace, pgdata } = place('echo "initdb: error: libicuuc.so.60 is missing" >&2; exit 127');
    expect(() => databaseAccount(pgdata, initdb, workplace)).toThrow(
      expect.objectContaining({
        message: "Couldn't run PostgreSQL as the unprivileged user 65534: initdb: error: libicuuc.so.60 is missing",
        remedy: expect.stringMatching(/^remove node_modules and start again/),
      }),
    );
  });

  it('is refused with the closed directory, and what was said', () => {
    const { initdb, workplace, pgdata } = place('echo "no entry" >&2; exit 1');
    chmodSync(workplace, 0o700);
    expect(() => databaseAccount(pgdata, initdb, workplace)).toThrow(
      expect.objectContaining({
        message: expect.stringContaining(`can't access ${workplace}: `),
        remedy: expect.stringContaining(`chmod o+x ${workplace},`),
      }),
    );
  });
});
