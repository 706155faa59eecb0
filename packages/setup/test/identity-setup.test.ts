// What identity-setup does to make authentik ready, and what it says when that cannot be.

import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StackError } from '@holdfast/kit/app-error';
import { identitySetupApi } from '../identity/api.ts';
import { setUpIdentity } from '../identity/setup.ts';
import { type FakeAuthentik, fakeAuthentik, OUTPOST_TOKEN } from './authentik.ts';
import { identityKeysContract } from './identity-setup-contract.ts';

const BOOTSTRAP = 'bootstrap-token-0123456789-abcdefgh';
const MANAGEMENT = 'management-token-0123456789-abcdefgh';

let authentik: FakeAuthentik;
let directory: string;
let keyFile: string;
let clockMs: number;
let changed: string[];
let waited: string[];
/** Called in each pause, with the time since the start. */
let meanwhile: (ms: number) => void;

beforeEach(async () => {
  authentik = await fakeAuthentik(BOOTSTRAP, MANAGEMENT);
  directory = mkdtempSync(join(tmpdir(), 'holdfast-outpost-'));
  keyFile = join(directory, 'token');
  clockMs = 0;
  changed = [];
  waited = [];
  meanwhile = () => undefined;
});
afterEach(async () => {
  await authentik.close();
  rmSync(directory, { recursive: true, force: true });
});

const setUp = (tokens: { bootstrapToken?: string; managementToken?: string } = {}): Promise<void> =>
  setUpIdentity(
    identitySetupApi(authentik.url, fetch),
    { bootstrapToken: BOOTSTRAP, managementToken: MANAGEMENT, keyFile, ...tokens },
    {
      now: () => clockMs,
      pause: async (ms) => {
        clockMs += ms;
        meanwhile(clockMs);
      },
      waiting: (forWhat, why) => void waited.push(`${clockMs / 1000} s: ${forWhat}: ${why}`),
      changed: (what) => void changed.push(what),
    },
  );

async function failureOf(work: Promise<unknown>): Promise<StackError> {
  const error = await work.then(() => undefined).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StackError);
  return error as StackError;
}

const applications = (): number => authentik.calls.filter(({ path }) => path.endsWith('/apply/')).length;

describe('identity-setup', () => {
  it('has the blueprint applied, and gives the outpost its key in a file that everybody with the volume may read', async () => {
    await setUp();
    expect(readFileSync(keyFile, 'utf8')).toBe('key-of-the-outpost');
    expect(statSync(keyFile).mode & 0o777).toBe(0o444);
    expect(applications()).toBe(1);
    expect(authentik.avatars).toBe('initials');
    expect(changed).toEqual(['avatars are no longer fetched from Gravatar', 'the LDAP outpost has a new key']);
  });

  it('run again has the blueprint applied with the settings of now, and changes nothing else', async () => {
    await setUp();
    const before = statSync(keyFile);
    changed = [];
    await setUp();
    expect([applications(), changed]).toEqual([2, []]);
    expect(statSync(keyFile).ino).toBe(before.ino);
  });

  it('writes anew a key that was changed in authentik', async () => {
    await setUp();
    const held = authentik.tokens.get(OUTPOST_TOKEN);
    authentik.onApplied = () => undefined;
    if (held !== undefined) held.key = 'another-key-of-the-outpost';
    await setUp();
    expect(readFileSync(keyFile, 'utf8')).toBe('another-key-of-the-outpost');
    expect(changed.at(-1)).toBe('the LDAP outpost has a new key');
  });

  it('leaves pictures of people as an administrator has set them', async () => {
    authentik.avatars = 'attributes.avatar,initials';
    await setUp();
    expect(authentik.avatars).toBe('attributes.avatar,initials');
  });

  it('waits for a server that starts, and says every ten seconds what for', async () => {
    authentik.isReady = false;
    meanwhile = (ms) => void (authentik.isReady = ms >= 31_000);
    await setUp();
    expect(waited).toEqual(
      [10, 20, 30].map((at) => expect.stringMatching(`^${at} s: answer of authentik: .+ returned 503 for GET .+$`)),
    );
  });

  it('waits for the first start, for the file to be found, and for the worker to make the key of the outpost', async () => {
    const first = authentik.tokens.get('authentik-bootstrap-token');
    authentik.tokens.clear();
    authentik.blueprint.isFound = false;
    const { onApplied } = authentik;
    authentik.onApplied = () => {
      onApplied();
      authentik.tokens.delete(OUTPOST_TOKEN);
    };
    meanwhile = (ms) => {
      if (ms >= 20_000 && first !== undefined) authentik.tokens.set('authentik-bootstrap-token', first);
      if (ms >= 40_000) authentik.blueprint.isFound = true;
      if (ms >= 60_000) onApplied();
    };
    await setUp();
    expect(readFileSync(keyFile, 'utf8')).toBe('key-of-the-outpost');
    expect(waited.join('\n')).toContain('token that authentik accepts: it accepts neither IDENTITY_BOOTSTRAP_TOKEN');
    expect(waited.join('\n')).toContain('authentik-worker has not found the file yet');
    expect(waited.join('\n')).toContain('key of the LDAP outpost: authentik-worker has not created it yet');
  });

  it('asks for the blueprint again when the worker forgot it, and when what it needs came after it', async () => {
    authentik.applications = ['lost', 'error', 'warning'];
    await setUp();
    expect(applications()).toBe(4);
    expect(waited.some((line) => line.includes('authentik-worker has not applied it yet'))).toBe(true);
    expect(waited.some((line) => line.includes('its status is error'))).toBe(true);
  });

  it('ends with a sentence and the log to read when the blueprint cannot be applied', async () => {
    authentik.applications = Array.from({ length: 9 }, () => 'error');
    const { message, remedy } = await failureOf(setUp());
    expect(message).toBe("authentik couldn't apply the blueprint holdfast/holdfast.yaml (error).");
    expect(remedy).toContain('docker compose logs authentik-worker');
    expect(applications()).toBe(4);
  });

  it('ends with a sentence when the blueprint is switched off, is never found, or authentik never answers', async () => {
    authentik.blueprint.enabled = false;
    expect((await failureOf(setUp())).message).toContain('is disabled in authentik');
    authentik.blueprint.isFound = false;
    expect((await failureOf(setUp())).message).toBe(
      'After 5 min there is no blueprint holdfast/holdfast.yaml: authentik-worker has not found the file yet.',
    );
    authentik.isReady = false;
    const { message, remedy } = await failureOf(setUp());
    expect(message).toMatch(/^After 10 min there is no answer of authentik: .+ returned 503 for GET .+\.$/);
    expect(remedy).toContain('docker compose logs --tail 50 authentik-server');
  });

  it('brings an IDENTITY_TOKEN that was changed in the settings into force', async () => {
    await setUp();
    authentik.onApplied = () => undefined;
    changed = [];
    await setUp({ managementToken: 'rotated-token-0123456789-abcdefgh' });
    expect(authentik.tokens.get('holdfast-management')?.key).toBe('rotated-token-0123456789-abcdefgh');
    expect(changed).toEqual(['authentik now uses IDENTITY_TOKEN of the settings']);
  });

  it('brings an IDENTITY_BOOTSTRAP_TOKEN that was changed in the settings into force by IDENTITY_TOKEN', async () => {
    await setUp();
    changed = [];
    await setUp({ bootstrapToken: 'rotated-token-0123456789-abcdefgh' });
    expect(authentik.tokens.get('authentik-bootstrap-token')?.key).toBe('rotated-token-0123456789-abcdefgh');
    expect(changed).toEqual(['authentik now uses IDENTITY_BOOTSTRAP_TOKEN of the settings']);
  });

  it('needs no first token once there is that of management', async () => {
    await setUp();
    authentik.tokens.delete('authentik-bootstrap-token');
    await setUp();
    expect(authentik.tokens.has('authentik-bootstrap-token')).toBe(false);
  });

  it('says that one token at a time can be changed when both were, and shows neither', async () => {
    await setUp();
    const wrong = { bootstrapToken: 'wrong-0123456789-abcdefgh', managementToken: 'wrong-too-0123456789-abcdefgh' };
    const { message, remedy } = await failureOf(setUp(wrong));
    expect(message).toContain('it accepts neither IDENTITY_BOOTSTRAP_TOKEN nor IDENTITY_TOKEN');
    expect(remedy).toContain('one of them can be changed at a time');
    for (const text of [message, remedy, ...waited]) expect(text).not.toContain('0123456789');
  });

  it('does not take the token of somebody who is no superuser for its own', async () => {
    const other = { key: MANAGEMENT, username: 'somebody', isSuperuser: false };
    authentik.tokens = new Map([['holdfast-management', other]]);
    expect((await failureOf(setUp())).message).toContain('of a superuser');
  });
});

identityKeysContract('authentik of the tests', async () => {
  authentik.onApplied();
  const api = identitySetupApi(authentik.url, fetch);
  return { api, key: BOOTSTRAP, identifier: OUTPOST_TOKEN, held: 'key-of-the-outpost' };
});
