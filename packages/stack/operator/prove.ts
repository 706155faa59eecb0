// Runs the connection check of a running stack, and prints its stages and the health warnings.
// Exit code 0 only if the connection check passes.

import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import { counted } from '@holdfast/kit/format';
import type { Proof, ModuleView } from '../../../shared/runtime/operator-answers.ts';
import { askManagement, OPERATOR_OPTIONS, type OperatorPlace, operatorPlace } from './place.ts';

interface ProveArguments {
  place: OperatorPlace;
  withinSeconds: number;
}

const USAGE = `Usage: prove [--within SECONDS] [--data DIR]

  --within SECONDS   retry a failing check for this long (default 0)
  --data DIR         data directory of a running embedded stack
`;
const ONE_TRY_WITHIN_MS = 40_000;
const BETWEEN_TRIES_MS = 3_000;
const MAX_SECONDS = 3600;
const REMEDIES_SHOWN = 2;

/** The program `prove`; resolves with its exit code. */
export async function prove(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const proof = await proveWithRetries(args);
  process.stdout.write(proofText(proof));
  return proof.passed ? 0 : 1;
}

function readArguments(call: Invocation): ProveArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    options: { ...OPERATOR_OPTIONS, within: { type: 'string' } },
    allowPositionals: true,
  });
  if (values.help === true) return 'help';
  if (positionals[0] !== undefined) throw new UsageError(`Unexpected argument: ${positionals[0]}`);
  const within = values.within ?? '0';
  if (!/^\d{1,4}$/.test(within) || Number(within) > MAX_SECONDS)
    throw new UsageError(`--within ${within}: must be a whole number of seconds up to ${MAX_SECONDS}`);
  return { place: operatorPlace(values.data, call), withinSeconds: Number(within) };
}

/**
 * Retries: our accounts and certificates are created in the first minute, so a failure before that
 * is not final.
 */
async function proveWithRetries({ place, withinSeconds }: ProveArguments): Promise<Proof> {
  const deadline = performance.now() + withinSeconds * 1000;
  let reportOf: string | undefined;
  for (;;) {
    const proof = await proveOnce(place);
    if (proof.passed || performance.now() + BETWEEN_TRIES_MS > deadline) return proof;
    const failed = proof.stages.at(-1)?.stage ?? 'account';
    if (failed !== reportOf)
      process.stderr.write(`  ... connection check failed at ${failed}, retrying: ${proof.message}\n`);
    reportOf = failed;
    await delay(BETWEEN_TRIES_MS);
  }
}

async function proveOnce(place: OperatorPlace): Promise<Proof> {
  try {
    return (await askManagement(place, { ask: 'prove' }, ONE_TRY_WITHIN_MS)) as Proof;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { passed: false, message: error.message, stages: [], complaints: [], measured: 0 };
  }
}

/** Formats a proof for the terminal. */
function proofText({ passed, message, stages, complaints, measured }: Proof): string {
  const lines = stages.map(
    ({ stage, ok, milliseconds }) =>
      `  ${ok ? 'ok  ' : 'FAIL'} ${stage.padEnd(12)} ${String(milliseconds).padStart(6)} ms`,
  );
  const verdict = passed ? 'A device can enroll, connect and send.' : `The connection check failed. ${message}`;
  const health =
    complaints.length === 0
      ? [`Health: no warnings from ${counted(measured, 'check')}.`]
      : [
          `Health: ${counted(complaints.length, 'warning')} from ${counted(measured, 'check')}:`,
          ...complaints.flatMap(complaintLines),
        ];
  return `${['Connection check:', ...lines, verdict, ...health].join('\n')}\n`;
}

function complaintLines({ module, status, message, remedies }: ModuleView): string[] {
  return [
    `  ${status.padEnd(8)} ${module}: ${message}`,
    ...remedies.slice(0, REMEDIES_SHOWN).map((remedy) => `           ${remedy}`),
  ];
}
