// A bind at the directory of a running stack, by a client of its own.

import { Client, InsufficientAccessError, InvalidCredentialsError } from 'ldapts';
import type { TestStack } from './embedded.ts';

/** True when the directory lets them in on that base; by default the core's. */
export async function bindsAt(
  stack: TestStack,
  username: string,
  password: string,
  base = stack.file().ldap.base_dn,
): Promise<boolean> {
  const client = new Client({ url: stack.file().ldap.url });
  try {
    await client.bind(`cn=${username},ou=users,${base}`, password);
    return true;
  } catch (error) {
    if (!(error instanceof InvalidCredentialsError || error instanceof InsufficientAccessError)) throw error;
    return false;
  } finally {
    await client.unbind();
  }
}
