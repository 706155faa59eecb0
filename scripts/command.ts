// What every program for the terminal does alike: reads its arguments or says how it is called, and ends with a code.

import { failureText } from './progress.ts';
import { UsageError } from './start-arguments.ts';

/** The arguments; or the exit code, when the usage was asked for (0) or has to be shown (2). */
export function argumentsOrUsage<T extends object>(parse: () => T | 'help', usage: string): T | number {
  try {
    const args = parse();
    if (args !== 'help') return args;
    process.stdout.write(usage);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${usage}`);
    return 2;
  }
}

/** Runs the program and ends the process with its code; a failure is told, and is 1. */
export async function exitWith(main: () => Promise<number>): Promise<never> {
  const code = await main().catch((error: unknown) => {
    process.stderr.write(failureText(error));
    return 1;
  });
  process.exit(code);
}
