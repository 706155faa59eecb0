// The client of the identity provider and the provider of a running stack, held to the contract
// together.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity } from '../../../shared/identity/authentik/http.ts';
import { exclusiveByDatabase } from '../../../shared/identity/exclusive.ts';
import type { Identity } from '../../../shared/identity/port.ts';
import { identityContract } from '../../identity/identity-contract.ts';
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
  identityContract('the embedded provider', identityOfStack, /^Holdfast identity provider \d+\.\d+/);
});
