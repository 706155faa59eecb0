// Checks passwords at a bind. Compares app passwords by digest. Unknown names and accounts without
// a password cost no hash; the caller delays refusals, so that the time doesn't reveal which
// accounts exist.

import { messageOf } from '@holdfast/kit/app-error';
import type { FairLine } from '@holdfast/kit/fair-queue';
import type { Log } from '@holdfast/kit/log';
import type { IdentityKeys } from '../model/keys.ts';
import { isKeepable, nameKey } from '../model/names.ts';
import {
  hashPassword,
  isOutdated,
  isPasswordOf,
  MAX_PASSWORD_BYTES,
  readPasswordHash,
} from '../model/password-hash.ts';
import type { CheckPassword, PasswordAttempt, PasswordVerdict } from '../model/roster.ts';
import type { RunSql } from './database.ts';
import { isValid } from './tokens.ts';

export interface PasswordCheckOptions {
  run: RunSql;
  keys: IdentityKeys;
  line: FairLine;
  now: () => Date;
  log: Log;
}

export interface PasswordCheck {
  check: CheckPassword;
  /** Resolves when the notes about accepted sign-ins are written or have failed. */
  settled: () => Promise<void>;
}

interface Candidate {
  pk: number;
  is_active: boolean;
  password_hash: string | null;
  password_changed_at: Date | null;
  last_login: Date | null;
  fits_app_password: boolean;
}

const LAST_LOGIN_EVERY_MS = 60_000;

/**
 * Reads everything at each call and caches no verdict. Writes login time and a fresh hash after
 * the verdict: a full disk or a lock must not prevent a sign-in with the right password.
 */
export function passwordCheck({ run, keys, line, now, log }: PasswordCheckOptions): PasswordCheck {
  const underWay = new Set<Promise<void>>();
  /** One note at a time per account: a locked row must not use up the connections. */
  const noting = new Set<number>();

  async function check(attempt: PasswordAttempt): Promise<PasswordVerdict> {
    const { username, password, appPasswords, place, wanted } = attempt;
    if (password === '' || Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return 'refused';
    const found = isKeepable(username) ? await candidate(username, password) : undefined;
    if (found?.is_active === true && appPasswords && found.fits_app_password) {
      later(found.pk, noteLogin(found));
      return { pk: found.pk };
    }
    const hash = found?.is_active === true ? readPasswordHash(found.password_hash ?? '') : undefined;
    if (found === undefined || hash === undefined) return 'refused';
    const fresh = isOutdated(hash);
    const judge = async (): Promise<{ right: boolean; fresh: string | undefined }> => {
      const right = await isPasswordOf(hash, password);
      return { right, fresh: right && fresh ? await hashPassword(password) : undefined };
    };
    const judged = await line.run(place, judge, wanted);
    if (judged === undefined) return 'busy';
    if (!judged.right) return 'refused';
    if (!(await holdsStill(found))) return 'refused';
    later(found.pk, noteLogin(found));
    if (judged.fresh !== undefined) later(found.pk, replaceHash(found, judged.fresh));
    return { pk: found.pk };
  }

  async function candidate(username: string, password: string): Promise<Candidate | undefined> {
    const [found] = await run(
      (sql) => sql<Candidate[]>`
        SELECT pk, is_active, password_hash, password_changed_at, last_login, EXISTS (
          SELECT FROM token WHERE token.key_digest = ${keys.digest(password)} AND token.account_pk = account.pk
            AND token.intent = 'app_password' AND ${isValid(sql, now())}
        ) AS fits_app_password
        FROM account WHERE username_key = ${nameKey(username)}`,
    );
    return found;
  }

  /** False when the account or its password changed while this attempt waited in line. */
  async function holdsStill({ pk, password_changed_at: before }: Candidate): Promise<boolean> {
    const rows = await run(
      (sql) => sql`
        SELECT FROM account WHERE pk = ${pk} AND is_active AND password_changed_at IS NOT DISTINCT FROM ${before}`,
    );
    return rows.length > 0;
  }

  async function noteLogin({ pk, last_login: last }: Candidate): Promise<void> {
    const at = now();
    const before = new Date(at.getTime() - LAST_LOGIN_EVERY_MS);
    if ((last !== null && last > before) || noting.has(pk)) return;
    noting.add(pk);
    await run(
      (sql) => sql`
        UPDATE account SET last_login = ${at} WHERE pk = ${pk} AND (last_login IS NULL OR last_login <= ${before})`,
    ).finally(() => noting.delete(pk));
  }

  /** Replaces the hash of the same password, unless it was changed in the meantime. */
  async function replaceHash({ pk, password_hash: before }: Candidate, fresh: string): Promise<void> {
    await run((sql) => sql`UPDATE account SET password_hash = ${fresh} WHERE pk = ${pk} AND password_hash = ${before}`);
  }

  function later(pk: number, work: Promise<void>): void {
    const noted = work
      .catch((error: unknown) => log.warn('identity.login_not_noted', { user: pk, error: messageOf(error) }))
      .finally(() => underWay.delete(noted));
    underWay.add(noted);
  }

  return {
    check,
    settled: async () => {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
