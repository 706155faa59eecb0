// Runs the program of audit.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { stackDatabaseUrl } from '@holdfast/setup/containers/plan';
import { audit } from '@holdfast/stack/operator/audit';

// In the management container, the URL is built from a password.
await runProgram(
  (call) => audit(call, call.environment['DATABASE_URL'] || stackDatabaseUrl(call.environment)),
  resolve(import.meta.dirname, '..'),
);
