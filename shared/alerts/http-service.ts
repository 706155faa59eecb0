// One call of a message service's HTTP API: limited in time and size, and no redirect is followed with credentials.
// Web APIs only: runs on Node and in workerd.

import { z } from 'zod';
import { rounded } from '@holdfast/kit/format';
import { failureWords, foreignWords } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import type { SendOutcome } from './port.ts';

const MAX_CHARACTERS = 100_000;
/** The longest that a send by a service with an HTTP API takes, with the time to say what happened. */
const HTTP_SEND_WITHIN_MS = 20_000;
const WITHIN_MS = HTTP_SEND_WITHIN_MS - 1000;
/** Asked the same again, a service says the same: something about the message, the receiver or the account is wrong. */
const FOR_GOOD: readonly number[] = [400, 401, 403, 404, 422];

/** A service, and what must never be shown of the calls to it. */
export interface Service {
  /** As people call it. */
  name: string;
  /** What it knows us by, for people (`the API key`). */
  credential: string;
  secrets: readonly string[];
  /** Injected: the platform's. */
  fetch: typeof globalThis.fetch;
  withinMs: number | undefined;
}

/** The longest that one send by this service may take. */
export function limitOf({ withinMs = WITHIN_MS }: Service): number {
  return withinMs;
}

/** What the service answered (`body` is the JSON, if it was any), or why it could not be asked. */
export type Answer =
  | { status: number; body: unknown; retryAfterSeconds: number | undefined }
  | { status: undefined; failure: string };

/** What an answer's body says; each service has names of its own for it. */
export interface ServiceReply {
  /** The service's own id of the message. */
  id?: string | undefined;
  /** Why it was refused. */
  reason?: string | undefined;
}

/** Asks once, for at most `ms`. Never rejects. */
export async function askService(
  service: Service,
  address: string,
  init: RequestInit,
  ms = limitOf(service),
): Promise<Answer> {
  const { host } = new URL(address);
  const signal = AbortSignal.timeout(ms);
  try {
    const late = (): Error => signal.reason as Error;
    // The second limit is for a fetch that does not mind the signal.
    return await withTimeout(ms + 100, late, exchange(service, address, { ...init, redirect: 'manual', signal }));
  } catch (error) {
    // A notifier answers for every recipient, whatever happened.
    const failure = signal.aborted
      ? `did not answer within ${rounded(ms / 1000, 1)} s`
      : failureWords(error, service.secrets);
    return { status: undefined, failure: `${host} ${failure}` };
  }
}

async function exchange(service: Service, address: string, init: RequestInit): Promise<Answer> {
  const response = await service.fetch(address, init);
  const retryAfterSeconds = secondsUntilRetry(response.headers);
  return { status: response.status, body: await jsonOf(response), retryAfterSeconds };
}

/** Undefined when it is no JSON, or longer than any answer. */
async function jsonOf(response: Response): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_CHARACTERS) return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `Retry-After` is seconds or a date; a date counts from the service's own clock where it tells it. */
function secondsUntilRetry(headers: Headers): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const until = Date.parse(text);
  if (Number.isNaN(until)) return undefined;
  const now = Date.parse(headers.get('date') ?? '');
  return Math.max(0, Math.ceil((until - (Number.isNaN(now) ? Date.now() : now)) / 1000));
}

/** What an answer means for a recipient. */
export function outcomeOf(
  service: Service,
  answer: Answer,
  reported: z.ZodType<ServiceReply>,
): Omit<SendOutcome, 'recipient'> {
  if (answer.status === undefined) return { accepted: false, detail: answer.failure };
  const { status, retryAfterSeconds } = answer;
  const { id, reason = '' } = reported.safeParse(answer.body).data ?? {};
  // 201 without an id is a success too: sending an SMS again costs money. A page with 200 may come from anybody.
  const accepted = status === 201 || (status >= 200 && status < 300 && id !== undefined);
  const words = foreignWords(accepted ? (id ?? '') : reason, service.secrets);
  const verdict = accepted ? `${service.name} accepted it` : refusal(service, status);
  const detail = [verdict, ...(words === '' ? [] : [words])].join(': ');
  if (accepted) return { accepted, detail };
  return {
    accepted,
    detail,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(FOR_GOOD.includes(status) ? { permanent: true } : {}),
  };
}

function refusal({ name, credential }: Service, status: number): string {
  if (status < 300) return `${name} answered ${status}, and not with the id of a message`;
  if (status < 400) return `${name} answered ${status}, a redirect, which is not followed`;
  if (status === 401) return `${name} does not accept ${credential} (401)`;
  if (status === 429) return `${name} asks for a pause (429)`;
  return status < 500 ? `${name} refused it (${status})` : `${name} has a fault of its own (${status})`;
}
