// Sessions and API tokens over a real database, and texts that somebody else made, or changed.

import { createHmac, hkdfSync } from 'node:crypto';
import { UnsecuredJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { Secret } from '@holdfast/kit/secret';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import { failureTable } from '../../shared/sign-in/lockouts.ts';
import type { SignIns } from '../../shared/sign-in/port.ts';
import { endSignInsOf, SignedSignIns } from '../../shared/sign-in/signed-sign-ins.ts';
import { query } from '../e2e/embedded/embedded.ts';
import { emptyDatabase } from '../e2e/embedded/empty-database.ts';
import { failuresContract } from './failures-contract.ts';
import { sessionFor, signInsContract, holder, tokenFor } from './sign-ins-contract.ts';

const KEY = 'a key of this test that is long enough';
const OPTIONS = { name: 'sign-ins-test', called: 'our own database', variable: 'DATABASE_URL', withinMs: 20_000 };

const database = emptyDatabase();
let run: RunSql;
let signIns: SignIns;

/** Counts the pieces of work that reach the database. */
let worked = 0;
const counting: RunSql = async (use) => {
  worked += 1;
  return run(use);
};

const endAllOf = async (username: string): Promise<void> => {
  await run((sql) => sql.begin((transaction) => endSignInsOf(transaction, username)));
};

beforeAll(async () => {
  run = keptDatabase(new Secret(database.stateUrl()), OPTIONS);
  await run((sql) => migrate(sql, MIGRATIONS));
  signIns = new SignedSignIns({ run: counting, key: new Secret(KEY) });
});

failuresContract('in the database', () => failureTable(run));

signInsContract('in the database', () => ({ signIns, endAllOf }));

const decoded = (part = ''): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');

/** A text with this header and these claims, signed with the key of its kind. */
function signedAs(kind: 'session' | 'token', header: object, claims: object): string {
  const key = new Uint8Array(hkdfSync('sha256', KEY, '', `holdfast ${kind}`, 32));
  const text = `${encoded(header)}.${encoded(claims)}`;
  const signature = createHmac('sha256', key).update(text).digest('base64url');
  return `${kind === 'token' ? 'hft_' : ''}${text}.${signature}`;
}

describe('a signed text', () => {
  it('is refused when one of its characters is another, or is missing, without a look into the database', async () => {
    const { text } = await signIns.openSession(sessionFor(holder()));
    const { text: token } = await signIns.createToken(tokenFor(holder()));
    const before = worked;
    for (const [kind, whole] of [
      ['session', text],
      ['token', token],
    ] as const) {
      for (let place = 0; place < whole.length; place++) {
        const wrong = whole[place] === 'A' ? 'B' : 'A';
        const changed = whole.slice(0, place) + wrong + whole.slice(place + 1);
        const cut = whole.slice(0, place) + whole.slice(place + 1);
        expect([place, await signIns.recognize(kind, changed), await signIns.recognize(kind, cut)]).toEqual([
          place,
          undefined,
          undefined,
        ]);
      }
      for (const wrong of [`${whole}A`, ` ${whole}`, `${whole}\n`, `${whole}=`, `${whole}.${whole}`])
        expect(await signIns.recognize(kind, wrong)).toBeUndefined();
    }
    expect(worked).toBe(before);
    expect([await signIns.recognize('session', text), await signIns.recognize('token', token)]).toEqual([
      expect.anything(),
      expect.anything(),
    ]);
    expect(worked).toBe(before + 2);
  });

  it('has one spelling: the unused bits of its last character count as well', async () => {
    const { text } = await signIns.openSession(sessionFor(holder()));
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const valid: string[] = [];
    for (const last of alphabet)
      if ((await signIns.recognize('session', text.slice(0, -1) + last)) !== undefined) valid.push(last);
    expect(valid).toEqual([text.at(-1)]);
  });

  it('of one kind is nothing as the other, also with the prefix of the other', async () => {
    const { text } = await signIns.openSession(sessionFor(holder()));
    const { text: token } = await signIns.createToken(tokenFor(holder()));
    expect(await signIns.recognize('token', text)).toBeUndefined();
    expect(await signIns.recognize('token', `hft_${text}`)).toBeUndefined();
    expect(await signIns.recognize('session', token)).toBeUndefined();
    expect(await signIns.recognize('session', token.slice('hft_'.length))).toBeUndefined();
  });

  it('counts only with the algorithm, type, audience, issuer and times that we give, even under our own key', async () => {
    const { text } = await signIns.openSession(sessionFor(holder()));
    const [header, claims] = text.split('.').map((part, index) => (index < 2 ? decoded(part) : {}));
    const again = (newHeader: object, newClaims: object): Promise<unknown> =>
      signIns.recognize('session', signedAs('session', { ...header, ...newHeader }, { ...claims, ...newClaims }));
    expect(await again({}, {})).toBeDefined();
    for (const [newHeader, newClaims] of [
      [{ alg: 'none' }, {}],
      [{ alg: 'HS512' }, {}],
      [{ typ: 'JWT' }, {}],
      [{ typ: 'holdfast-token+jwt' }, {}],
      [{ crit: ['b64'], b64: false }, {}],
      [{}, { aud: 'token' }],
      [{}, { iss: 'another' }],
      [{}, { exp: Math.floor(Date.now() / 1000) - 1 }],
      [{}, { exp: undefined }],
      [{}, { nbf: Math.floor(Date.now() / 1000) + 3600 }],
      [{}, { sub: holder() }],
      [{}, { sub: undefined }],
      [{}, { jti: undefined }],
      [{}, { jti: 'short' }],
    ] as const)
      expect([newHeader, newClaims, await again(newHeader, newClaims)]).toEqual([newHeader, newClaims, undefined]);
    const unsecured = new UnsecuredJWT(claims).encode();
    expect(await signIns.recognize('session', unsecured)).toBeUndefined();
    expect(await signIns.recognize('session', `${unsecured}${'A'.repeat(43)}`)).toBeUndefined();
  });

  it('of another SESSION_KEY is refused, and neither refuses its own', async () => {
    const other = new SignedSignIns({ run, key: new Secret(`${KEY}.`) });
    const [mine, theirs] = [
      await signIns.openSession(sessionFor(holder())),
      await other.openSession(sessionFor(holder())),
    ];
    expect([await signIns.recognize('session', theirs.text), await other.recognize('session', mine.text)]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await other.recognize('session', theirs.text)).toBeDefined();
  });

  it('cannot be made or checked without SESSION_KEY: that says what to set', async () => {
    const { text } = await signIns.openSession(sessionFor(holder()));
    const without = new SignedSignIns({ run, key: undefined });
    const refusal = {
      code: 'unavailable',
      message: expect.stringMatching(/SESSION_KEY is not set\. Remedy: .*openssl/),
    };
    await expect(without.recognize('session', text)).rejects.toMatchObject(refusal);
    await expect(without.openSession(sessionFor(holder()))).rejects.toMatchObject(refusal);
    await expect(without.createToken(tokenFor(holder()))).rejects.toMatchObject(refusal);
    expect(await without.recognize('session', 'nonsense')).toBeUndefined();
    expect(await without.epoch(holder())).toBe(0);
  });

  it('stands nowhere in the database, and neither does its id', async () => {
    const { text } = await signIns.openSession(sessionFor(holder()));
    const { text: token } = await signIns.createToken(tokenFor(holder()));
    const rows = await query<{ row: string }>(
      database.stateUrl(),
      `SELECT session::text AS row FROM session UNION ALL SELECT api_token::text FROM api_token`,
    );
    const stored = rows.map(({ row }) => row).join('\n');
    for (const each of [text, token.slice('hft_'.length)]) {
      const id = String(decoded(each.split('.')[1])['jti']);
      expect(id).toMatch(/^[\w-]{43}$/);
      const hex = Buffer.from(id, 'base64url').toString('hex');
      for (const secret of [each, id, hex, each.split('.')[2] ?? '']) expect(stored).not.toContain(secret);
    }
    expect(rows.length).toBeGreaterThan(2);
  });
});

describe('the end of everything of a person', () => {
  it('happens with the transaction of the caller, or not at all', async () => {
    const name = holder();
    const { text } = await signIns.openSession(sessionFor(name));
    const undone = run((sql) =>
      sql.begin(async (transaction) => {
        await endSignInsOf(transaction, name);
        throw new Error('undone');
      }),
    );
    await expect(undone).rejects.toThrow('undone');
    expect(await signIns.epoch(name)).toBe(0);
    expect(await signIns.recognize('session', text)).toBeDefined();
  });

  it('voids what another process opens before it is committed', async () => {
    const name = holder();
    const token = await run((sql) =>
      sql.begin(async (transaction) => {
        const pending = await signIns.createToken(tokenFor(name));
        await endSignInsOf(transaction, name);
        const meanwhile = await signIns.createToken(tokenFor(name));
        return [pending, meanwhile];
      }),
    );
    for (const { text } of token) expect(await signIns.recognize('token', text)).toBeUndefined();
  });
});

describe('a database that does not answer', () => {
  it('is said to be away; what is malformed is refused all the same', async () => {
    const nowhere = keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/nowhere'), OPTIONS);
    const unavailable = new SignedSignIns({ run: nowhere, key: new Secret(KEY) });
    const { text } = await signIns.openSession(sessionFor(holder()));
    const refusal = { code: 'unavailable', message: expect.stringContaining('Our own database does not answer') };
    await expect(unavailable.recognize('session', text)).rejects.toMatchObject(refusal);
    await expect(unavailable.epoch(holder())).rejects.toMatchObject(refusal);
    expect(await unavailable.recognize('session', 'nonsense')).toBeUndefined();
  });
});
