// Sends the heartbeat: GET of HEARTBEAT_URL, where any 2xx is success. The URL is a secret and is
// in no message.

import { AppError, causeOf, codeOf } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';
import { base64 } from '@holdfast/kit/text';
import type { Heartbeat, HeartbeatState } from './port.ts';

const WITHIN_MS = 15_000;

/** `fetch` is the platform's. */
export function httpHeartbeat(
  url: Secret,
  fetch: typeof globalThis.fetch,
  now: () => Date,
  withinMs = WITHIN_MS,
): Heartbeat {
  let state: HeartbeatState = { last_ok_at: null, failures_in_row: 0, error: null };

  async function beat(): Promise<void> {
    const error = await failureOf();
    if (error === undefined) {
      state = { last_ok_at: now().toISOString(), failures_in_row: 0, error: null };
      return;
    }
    state = { ...state, failures_in_row: state.failures_in_row + 1, error: error.message };
    throw error;
  }

  async function failureOf(): Promise<AppError | undefined> {
    try {
      const { address, headers } = requestOf(url);
      const response = await fetch(address, { headers, signal: AbortSignal.timeout(withinMs) });
      await response.body?.cancel();
      return response.ok ? undefined : new AppError('upstream', `HEARTBEAT_URL answered ${response.status}`);
    } catch (error) {
      return new AppError('unavailable', `HEARTBEAT_URL does not answer (${reasonOf(error)})`);
    }
  }

  return { beat, state: async () => state };
}

/** Moves user and password of the URL to a header, as fetch requires. */
function requestOf(url: Secret): { address: string; headers: Record<string, string> } {
  const parsed = new URL(url.reveal());
  const { username, password } = parsed;
  parsed.username = '';
  parsed.password = '';
  if (username === '' && password === '') return { address: parsed.href, headers: {} };
  const login = base64(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return { address: parsed.href, headers: { authorization: `Basic ${login}` } };
}

/** Returns only a code: a message of the platform may contain the address. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'no answer in time';
  const cause = causeOf(error);
  return /^[A-Z][A-Z0-9_]+$/.test(cause) ? cause : (codeOf(error) ?? 'unreachable');
}
