// Entry of audit.sh.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { stackDatabaseUrl } from '@holdfast/setup/containers/plan';
import { audit } from '@holdfast/stack/operator/audit';

// In the container of management the URL is made of a password.
await runProgram(
  (call) => audit(call, call.environment['DATABASE_URL'] || stackDatabaseUrl(call.environment)),
  resolve(import.meta.dirname, '..'),
);
