// The client of the identity provider and the provider of a running stack, held to the contract together.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect } from 'vitest';
import { exclusiveByDatabase } from '../../shared/adapters/exclusive.ts';
import { httpIdentity } from '../../shared/adapters/identity-http.ts';
import { keptDatabase } from '../../shared/adapters/kept-database.ts';
import { Secret } from '../../shared/domain/secret.ts';
import type { Identity } from '../../shared/ports/identity.ts';
import { identityContract } from '../contract/identity.ts';
import { newStack, type TestStack } from './embedded.ts';

let stack: TestStack;

function identityOfStack(): Identity {
  const secrets = JSON.parse(readFileSync(join(stack.data, 'secrets.json'), 'utf8')) as Record<string, string>;
  const state = new Secret(stack.file().state_database);
  const options = { name: 'identity-contract', called: 'our own database', variable: 'DATABASE_URL', withinMs: 30_000 };
  return httpIdentity({
    url: `http://127.0.0.1:${9000 + stack.offset}`,
    token: new Secret(secrets['IDENTITY_TOKEN'] ?? ''),
    fetch,
    exclusive: exclusiveByDatabase(keptDatabase(state, options)),
  });
}

describe('the stack', () => {
  beforeAll(async () => {
    stack = await newStack();
    expect((await stack.start()).code).toBe(0);
  });
  identityContract('the embedded provider', identityOfStack);
});
