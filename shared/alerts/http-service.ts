// Calls the HTTP API of a message service, with limits on time and size, and without following
// redirects. Uses only web APIs: runs on Node and in workerd.

import { z } from 'zod';
import { rounded } from '@holdfast/kit/format';
import { failureWords, foreignWords } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import type { SendOutcome } from './port.ts';

const MAX_CHARACTERS = 100_000;
/** Time limit of a send over an HTTP API, including the time to report the outcome. */
const HTTP_SEND_WITHIN_MS = 20_000;
const WITHIN_MS = HTTP_SEND_WITHIN_MS - 1000;
/**
 * Permanent statuses: the message, the recipient or the account is wrong, so a retry gets the same
 * answer.
 */
const FOR_GOOD: readonly number[] = [400, 401, 403, 404, 422];

/** A service, and the secrets of its calls. */
export interface Service {
  /** Its name for people. */
  name: string;
  /** The name of our credential for people (`the API key`). */
  credential: string;
  secrets: readonly string[];
  /** The platform's fetch, injected. */
  fetch: typeof globalThis.fetch;
  withinMs: number | undefined;
}

/** Time limit of one send by this service. */
export function limitOf({ withinMs = WITHIN_MS }: Service): number {
  return withinMs;
}

/** The answer of the service (`body` is its JSON, if any), or why it could not be reached. */
export type Answer =
  | { status: number; body: unknown; retryAfterSeconds: number | undefined }
  | { status: undefined; failure: string };

/** The content of an answer, which every service names differently. */
export interface ServiceReply {
  /** The service's own id of the message. */
  id?: string | undefined;
  /** Why it was rejected. */
  reason?: string | undefined;
}

/** Sends one request, for at most `ms`. Never rejects. */
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
    // The second limit is for a fetch that ignores the signal.
    return await withTimeout(ms + 100, late, exchange(service, address, { ...init, redirect: 'manual', signal }));
  } catch (error) {
    // A notifier reports an outcome for every recipient, even after an error.
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

/** Undefined if it is not JSON, or too long. */
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

/**
 * `Retry-After` is seconds or a date; a date is relative to the service's clock, if it sends its
 * time.
 */
function secondsUntilRetry(headers: Headers): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const until = Date.parse(text);
  if (Number.isNaN(until)) return undefined;
  const now = Date.parse(headers.get('date') ?? '');
  return Math.max(0, Math.ceil((until - (Number.isNaN(now) ? Date.now() : now)) / 1000));
}

/** The outcome of an answer for a recipient. */
export function outcomeOf(
  service: Service,
  answer: Answer,
  reported: z.ZodType<ServiceReply>,
): Omit<SendOutcome, 'recipient'> {
  if (answer.status === undefined) return { accepted: false, detail: answer.failure };
  const { status, retryAfterSeconds } = answer;
  const { id, reason = '' } = reported.safeParse(answer.body).data ?? {};
  // 201 without an id is a success too, as resending an SMS costs money. A page with 200 may come
  // from any server.
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
  if (status < 300) return `${name} answered ${status} without a message id`;
  if (status < 400) return `${name} answered ${status}, a redirect, which is not followed`;
  if (status === 401) return `${name} rejected ${credential} (401)`;
  if (status === 429) return `${name} is rate limiting (429)`;
  return status < 500 ? `${name} rejected it (${status})` : `${name} has an internal error (${status})`;
}
