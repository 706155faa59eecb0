// What every program for the terminal does alike: reads its arguments or says how it is called, and
// ends with a code.

import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import type { z } from 'zod';
import { AppError, codeOf, explainFileError, messageOf, StackError } from './app-error.ts';

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

/** As parseArgs of Node; what it does not understand is a UsageError. */
export function parseCommandLine<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(messageOf(error).split('. ')[0]);
  }
}

/** How a program was called. */
export interface Invocation {
  /** The root of the repository, or of the image. */
  home: string;
  argv: string[];
  cwd: string;
  environment: NodeJS.ProcessEnv;
}

/** Runs the program and ends the process with its code; a failure is told, and is 1. */
export async function runProgram(main: (call: Invocation) => Promise<number>, home: string): Promise<never> {
  const call = { home, argv: process.argv.slice(2), cwd: process.cwd(), environment: process.env };
  const code = await main(call).catch((error: unknown) => {
    process.stderr.write(failureText(error));
    return 1;
  });
  process.exit(code);
}

/** To the person at the terminal; standard output is for what a program answers. */
export function say(text: string): void {
  process.stderr.write(text);
}

/**
 * A command line that cannot be understood; the message says which word and what to write instead.
 */
export class UsageError extends Error {}

/** A failure as a person reads it. */
export function failureText(cause: unknown): string {
  const error = explained(cause);
  if (error instanceof StackError) return `${error.message}\n  Remedy: ${error.remedy}\n`;
  if (error instanceof AppError) return `${error.message}\n`;
  return `Unexpected failure: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
}

/** In words, when the file system is what failed; of a write it does not say where. */
export function explained(cause: unknown): unknown {
  if (!(cause instanceof Error)) return cause;
  if ('path' in cause) return explainFileError(cause, String(cause.path));
  if (codeOf(cause) !== 'ENOSPC' && codeOf(cause) !== 'EDQUOT') return cause;
  return new StackError(`A disk is full (${cause.message}).`, 'free some space; df -h shows which disk it is', cause);
}

/**
 * A line from the terminal that is not shown while it is typed.
 * Rejects when the input ends, as with Ctrl-C or Ctrl-D.
 */
export async function readHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      lines
        .once('line', resolve)
        .once('close', () => reject(new StackError('No password was typed; nothing was changed.', 'try again')));
      lines.once('SIGINT', () => lines.close());
    });
  } finally {
    lines.removeAllListeners('close').close();
    process.stderr.write('\n');
  }
}

/**
 * What one program hands to another that it starts, in one environment variable. Takes the handover
 * out of the environment, so that nothing else reads it there. `how`: how the program is meant to
 * be started.
 */
export function takenHandover<T>(
  environment: NodeJS.ProcessEnv,
  variable: string,
  schema: z.ZodType<T>,
  how: string,
): T {
  const text = environment[variable];
  if (text === undefined) throw new Error(`${variable} is not set: ${how}`);
  delete environment[variable];
  return schema.parse(JSON.parse(text));
}
