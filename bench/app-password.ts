// Creates an account that a benchmark signs in with, by an app password.

import type { BenchStack } from './stack.ts';

/**
 * Of a new account with a group of its own, so that its devices see each other; by the identity
 * provider's API.
 */
export async function appPassword({ identity }: BenchStack, username: string): Promise<string> {
  const ask = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`${identity.url}/api/v3${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${identity.token}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  const { pk } = await ask('/core/users/', { username, name: username, path: 'users' });
  await ask('/core/groups/', { name: `core_${username}`, users: [pk] });
  const identifier = `${username}-enrollment`;
  await ask('/core/tokens/', { identifier, intent: 'app_password', user: pk, expiring: false });
  const { key } = await ask(`/core/tokens/${identifier}/view_key/`);
  return String(key);
}
