// The canary of revocation runs soon after each start, with an account of the provider, a
// certificate of the core and records of the audit log. Whoever counts or compares these waits
// until it is over.

import { eventually, query, type TestStack } from './embedded.ts';

/** Resolves when one has been run since then; none follows within a minute. */
export async function canaryHasRun(stack: TestStack, since = new Date(0)): Promise<void> {
  const isRecorded = async (): Promise<boolean> => {
    const found = await query(
      stack.file().state_database,
      `SELECT FROM canary_run WHERE at >= '${since.toISOString()}'`,
    );
    return found.length > 0;
  };
  await eventually('the canary has run', isRecorded, 60_000);
}
