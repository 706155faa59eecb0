// Sets up an exercise through the API of management, and removes it: a channel of its own and a
// service account with its certificate.

import { z } from 'zod';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import {
  SIMULATION_ACCOUNT as ACCOUNT,
  SIMULATION_CHANNEL as CHANNEL,
  SIMULATION_GROUP as GROUP,
  SIMULATION_USERNAME as USERNAME,
} from '../../../shared/simulation/port.ts';

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

const KIND = 'data';
const PAGE = 200;
const MAX_NAMES = 5;
/** A revocation is proven before it is answered. */
const WITHIN_MS = 60_000;

const named = z.object({ id: z.union([z.int(), z.string()]), name: z.string() });
const groupList = z.array(named);
const members = z.object({
  members: z.array(z.object({ username: z.string() })),
  hidden_members: z.int(),
});
const account = z.object({
  id: z.int(),
  username: z.string(),
  kind: z.string(),
  groups: z.array(z.string()),
  is_active: z.boolean(),
  certificate: z.object({ file: z.string(), downloadable: z.boolean() }).nullable(),
});
const accountPage = z.object({ results: z.array(account), count: z.int() });
const problem = z.object({ detail: z.string().optional(), title: z.string().optional() });
const coreHealth = z.object({
  data: z.object({ memory_used_bytes: z.number().nullish(), thinning_seconds: z.number().nullish() }),
});

/** Newest first; only one simulation is open at a time. */
const jobPage = z.object({ results: z.array(z.object({ finished_at: z.string().nullable() })) });

type Account = z.infer<typeof account>;

export interface Removal {
  account: boolean;
  channel: boolean;
  /** Why the channel stays: its other members, by username. */
  members: readonly string[];
}

export class ExerciseManagement {
  readonly #place: ManagementPlace;
  readonly #fetch: typeof fetch;
  #channelId: string | number | undefined;
  #accountId: number | undefined;

  constructor(place: ManagementPlace, request: typeof fetch = fetch) {
    this.#place = place;
    this.#fetch = request;
  }

  /**
   * Before a run: removes an exercise that was interrupted. Rejects with a StackError, and removes
   * nothing, when the account or the channel may be of somebody else.
   */
  async clear(): Promise<Removal> {
    await this.#mustBeAlone();
    const own = ownIn(await this.#activeAccounts());
    const channel = await this.#channel();
    // A channel has no attributes in the API: only the account says who made it.
    if (channel !== undefined && own === undefined) throw unexplainedChannel(channel.members);
    if (channel !== undefined && channel.members.length > 0) throw sharedChannel(channel.members);
    return this.#remove(own, channel?.id);
  }

  /** On demand: removes the account, and the channel when it has no other members. */
  async clean(): Promise<Removal> {
    await this.#mustBeAlone();
    return this.#remove(ownIn(await this.#activeAccounts()), (await this.#channel())?.id);
  }

  /** Rejects with a StackError when keys are not kept. */
  async prepare(): Promise<ExerciseIdentity> {
    this.#channelId = named.parse(await this.#ask('POST', '/api/groups', { name: CHANNEL })).id;
    const order = { name: ACCOUNT, kind: KIND, groups: [GROUP] };
    const { id, certificate } = account.parse(await this.#ask('POST', '/api/service-accounts', order));
    this.#accountId = id;
    if (certificate?.downloadable !== true)
      throw new StackError(
        `The key of ${USERNAME} can't be downloaded.`,
        'set KEEP_CLIENT_KEYS=true, restart, and try again. The key is deleted with the exercise',
      );
    const path = `/api/ops/certs/${encodeURIComponent(certificate.file)}/download?format=pem`;
    return { pem: await this.#text('GET', path) };
  }

  /** After a run: removes only what `prepare` has made. */
  async remove(): Promise<Removal> {
    if (this.#channelId === undefined) return { account: false, channel: false, members: [] };
    const accounts = await this.#activeAccounts();
    // Without an id, the account was made but the answer was lost.
    const own = accounts.find((each) =>
      this.#accountId === undefined ? isOfExercise(each) : each.id === this.#accountId,
    );
    return this.#remove(own, this.#channelId);
  }

  /** Undefined where it is not reported. */
  async core(): Promise<{ memoryBytes: number | undefined; thinningSeconds: number }> {
    const { data } = coreHealth.parse(await this.#ask('GET', '/api/health/core'));
    return { memoryBytes: data.memory_used_bytes ?? undefined, thinningSeconds: data.thinning_seconds ?? 0 };
  }

  /** A simulation of the console has a channel and an account of the same names. */
  async #mustBeAlone(): Promise<void> {
    const { results } = jobPage.parse(await this.#ask('GET', '/api/ops/jobs?kind=simulation&page=1&page_size=1'));
    if (results.every((job) => job.finished_at !== null)) return;
    throw new StackError(
      'A simulation that was started in the console is running.',
      'wait for its end, or stop it on the page Simulation (DELETE /api/ops/simulation)',
    );
  }

  /** The account first: its certificate must not outlive the run, whatever keeps the channel. */
  async #remove(own: Account | undefined, channelId: string | number | undefined): Promise<Removal> {
    if (own !== undefined) await this.#ask('DELETE', `/api/service-accounts/${own.id}`);
    const found = await this.#channel();
    const channel = found?.id === channelId ? found : undefined;
    const stays = channel?.members ?? [];
    const isRemoved = channel !== undefined && stays.length === 0;
    if (isRemoved) await this.#ask('DELETE', `/api/groups/${channel.id}`);
    return { account: own !== undefined, channel: isRemoved, members: stays };
  }

  async #activeAccounts(): Promise<Account[]> {
    return (await this.#accounts()).filter((each) => each.is_active);
  }

  #accounts(): Promise<Account[]> {
    return this.#all('/api/service-accounts', accountPage);
  }

  /** With the members that are not of an exercise, by username. */
  async #channel(): Promise<{ id: string | number; members: string[] } | undefined> {
    const groups = groupList.parse(await this.#ask('GET', '/api/groups'));
    const id = groups.find(({ name }) => name === GROUP)?.id;
    if (id === undefined) return undefined;
    const { members: shown, hidden_members: hidden } = members.parse(await this.#ask('GET', `/api/groups/${id}`));
    // Service accounts are hidden there, deactivated ones too. Of other hidden accounts only the
    // number is known.
    const services = (await this.#accounts()).filter(({ groups: its }) => its.includes(GROUP));
    const others = hidden - services.filter(({ username }) => !shown.some((each) => each.username === username)).length;
    const active = services.filter(({ is_active: isActive }) => isActive);
    const names = new Set([...shown, ...active].map(({ username }) => username));
    names.delete(USERNAME);
    const unnamed = others > 0 ? [`${others} hidden ${others === 1 ? 'account' : 'accounts'}`] : [];
    return { id, members: [...[...names].toSorted(), ...unnamed] };
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
    const answer = await this.#fetch(`${url}${path}`, {
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

function isOfExercise({ username, kind, groups }: Account): boolean {
  return username === USERNAME && kind === KIND && groups.length === 1 && groups[0] === GROUP;
}

/** Throws a StackError for an account of this name that no exercise has made. */
function ownIn(accounts: readonly Account[]): Account | undefined {
  const found = accounts.find(({ username }) => username === USERNAME);
  if (found === undefined || isOfExercise(found)) return found;
  const groups = found.groups.length === 0 ? 'no channel' : found.groups.join(', ');
  throw new StackError(
    `The service account ${USERNAME} is not of an exercise: its kind is ${found.kind}, and it is in ${groups}.`,
    `an exercise creates and deletes an account of this name. Replace yours by one of another name`,
  );
}

function unexplainedChannel(others: readonly string[]): StackError {
  const having = others.length === 0 ? '' : `, with the members ${listOf(others)}`;
  return new StackError(
    `The channel ${CHANNEL} exists without the account ${USERNAME}${having}: it may not be of an exercise.`,
    'if an exercise left it behind, remove its members and use --clean. Otherwise replace it by one of another name',
  );
}

function sharedChannel(others: readonly string[]): StackError {
  return new StackError(
    `The channel ${CHANNEL} of an interrupted exercise has other members: ${listOf(others)}.`,
    `remove them from the channel, then try again. --clean removes only ${USERNAME} and leaves them the channel`,
  );
}

/** At most five of them. */
export function listOf(names: readonly string[]): string {
  const rest = names.length - MAX_NAMES;
  return names.slice(0, MAX_NAMES).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
