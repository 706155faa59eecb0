// Sets up an exercise through the API of management, and removes it: a channel of its own and a
// service account with its certificate.

import { z } from 'zod';
import { messageOf, StackError } from '@holdfast/kit/app-error';

export interface ManagementPlace {
  /** Of the API. */
  url: string;
  /** The header: of an administrator. */
  authorization: string;
}

export interface ExerciseIdentity {
  /** PEM with the private key, the certificate and the CA. */
  pem: string;
}

const CHANNEL = 'EXERCISE';
const ACCOUNT = 'exercise';
const USERNAME = `svc_${ACCOUNT}`;
const GROUP = `core_${CHANNEL}`;
const PAGE = 200;
/** A revocation is proven before it is answered. */
const WITHIN_MS = 60_000;

const named = z.object({ id: z.union([z.int(), z.string()]), name: z.string() });
const groupList = z.array(named);
const members = z.object({ members: z.array(z.object({ username: z.string() })) });
const account = z.object({
  id: z.int(),
  username: z.string(),
  is_active: z.boolean(),
  certificate: z.object({ file: z.string(), downloadable: z.boolean() }).nullable(),
});
const accountPage = z.object({ results: z.array(account), count: z.int() });
const problem = z.object({ detail: z.string().optional(), title: z.string().optional() });
const coreHealth = z.object({
  data: z.object({ memory_used_bytes: z.number().nullish(), thinning_seconds: z.number().nullish() }),
});

export class ExerciseManagement {
  readonly #place: ManagementPlace;

  constructor(place: ManagementPlace) {
    this.#place = place;
  }

  /** Rejects with a StackError when the channel has other members, or keys are not kept. */
  async prepare(): Promise<ExerciseIdentity> {
    await this.#ask('POST', '/api/groups', { name: CHANNEL });
    const order = { name: ACCOUNT, kind: 'data', groups: [GROUP] };
    const { certificate } = account.parse(await this.#ask('POST', '/api/service-accounts', order));
    if (certificate?.downloadable !== true)
      throw new StackError(
        `The key of ${USERNAME} can't be downloaded.`,
        'set KEEP_CLIENT_KEYS=true, restart, and try again. The key is deleted with the exercise',
      );
    const path = `/api/ops/certs/${encodeURIComponent(certificate.file)}/download?format=pem`;
    return { pem: await this.#text('GET', path) };
  }

  /** Removes what is there of an exercise; true when there was something. */
  async remove(): Promise<boolean> {
    const accounts = await this.#all('/api/service-accounts', accountPage);
    const own = accounts.find(({ username, is_active: isActive }) => username === USERNAME && isActive);
    const groups = groupList.parse(await this.#ask('GET', '/api/groups'));
    const group = groups.find(({ name }) => name === GROUP);
    if (group !== undefined) await this.#refuseOthers(group.id);
    if (own !== undefined) await this.#ask('DELETE', `/api/service-accounts/${own.id}`);
    if (group !== undefined) await this.#ask('DELETE', `/api/groups/${group.id}`);
    return own !== undefined || group !== undefined;
  }

  /** Undefined where it is not reported. */
  async core(): Promise<{ memoryBytes: number | undefined; thinningSeconds: number }> {
    const { data } = coreHealth.parse(await this.#ask('GET', '/api/health/core'));
    return { memoryBytes: data.memory_used_bytes ?? undefined, thinningSeconds: data.thinning_seconds ?? 0 };
  }

  async #refuseOthers(id: string | number): Promise<void> {
    const found = members.parse(await this.#ask('GET', `/api/groups/${id}`)).members.map(({ username }) => username);
    const others = found.filter((username) => username !== USERNAME);
    if (others.length > 0)
      throw new StackError(
        `The channel ${CHANNEL} has members that are not of an exercise: ${others.slice(0, 5).join(', ')}.`,
        'an exercise deletes this channel at its end. Remove the members from it, or give the channel another name',
      );
  }

  async #all<T>(path: string, page: z.ZodType<{ results: T[]; count: number }>): Promise<T[]> {
    const all: T[] = [];
    for (let number = 1; ; number++) {
      const { results, count } = page.parse(await this.#ask('GET', `${path}?page=${number}&page_size=${PAGE}`));
      all.push(...results);
      if (results.length === 0 || all.length >= count) return all;
    }
  }

  async #ask(method: string, path: string, body?: object): Promise<unknown> {
    const text = await this.#text(method, path, body);
    return text === '' ? {} : (JSON.parse(text) as unknown);
  }

  async #text(method: string, path: string, body?: object): Promise<string> {
    const { url, authorization } = this.#place;
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(WITHIN_MS),
    }).catch((error: unknown) => {
      throw new StackError(`${url} does not answer: ${messageOf(error)}.`, 'start the stack, or check --url', error);
    });
    const text = await answer.text();
    if (answer.ok) return text;
    throw new StackError(
      `${method} ${path} was refused with status ${answer.status}: ${reasonIn(text)}`,
      'see docs/simulate.md. The same command with --clean removes what an exercise has left behind',
    );
  }
}

function reasonIn(text: string): string {
  try {
    const read = problem.safeParse(JSON.parse(text));
    return read.data?.detail ?? read.data?.title ?? 'no reason given';
  } catch {
    return 'the answer is no JSON';
  }
}
