// Asks the running management process to prove the stack: the probe goes the whole way of a device. Says each stage with its
// time, and every module that is not well; ends with 0 only when the probe came through.

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

  --within SECONDS   try again for as long while it fails (default 0)
  --data DIR         the directory of a running embedded stack
`;
const ONE_TRY_WITHIN_MS = 40_000;
const BETWEEN_TRIES_MS = 3_000;
const MAX_SECONDS = 3600;
const REMEDIES_SHOWN = 2;

/** The program `prove`; resolves with its exit code. */
export async function prove(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const proof = await proven(args);
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
  if (positionals[0] !== undefined) throw new UsageError(`${positionals[0]}: nothing is expected here`);
  const within = values.within ?? '0';
  if (!/^\d{1,4}$/.test(within) || Number(within) > MAX_SECONDS)
    throw new UsageError(`--within ${within}: must be a whole number of seconds up to ${MAX_SECONDS}`);
  return { place: operatorPlace(values.data, call), withinSeconds: Number(within) };
}

/** Accounts and certificates of our own are made in the first minute: until then a failure is no verdict. */
async function proven({ place, withinSeconds }: ProveArguments): Promise<Proof> {
  const deadline = performance.now() + withinSeconds * 1000;
  let reportOf: string | undefined;
  for (;;) {
    const proof = await tried(place);
    if (proof.passed || performance.now() + BETWEEN_TRIES_MS > deadline) return proof;
    const failed = proof.stages.at(-1)?.stage ?? 'account';
    if (failed !== reportOf)
      process.stderr.write(`  ... the probe does not get past ${failed} yet: ${proof.message}\n`);
    reportOf = failed;
    await delay(BETWEEN_TRIES_MS);
  }
}

async function tried(place: OperatorPlace): Promise<Proof> {
  try {
    return (await askManagement(place, { ask: 'prove' }, ONE_TRY_WITHIN_MS)) as Proof;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { passed: false, message: error.message, stages: [], complaints: [], measured: 0 };
  }
}

/** What a person reads of a proof. */
function proofText({ passed, message, stages, complaints, measured }: Proof): string {
  const lines = stages.map(
    ({ stage, ok, milliseconds }) =>
      `  ${ok ? 'ok  ' : 'FAIL'} ${stage.padEnd(12)} ${String(milliseconds).padStart(6)} ms`,
  );
  const verdict = passed ? 'A device can enroll, connect and be heard.' : `The probe failed. ${message}`;
  const health =
    complaints.length === 0
      ? [`Health: nothing to complain about in ${counted(measured, 'module')}.`]
      : [
          `Health: ${counted(complaints.length, 'module')} of ${measured} to look at:`,
          ...complaints.flatMap(complaintLines),
        ];
  return `${['Probe, the way of a device from end to end:', ...lines, verdict, ...health].join('\n')}\n`;
}

function complaintLines({ module, status, message, remedies }: ModuleView): string[] {
  return [
    `  ${status.padEnd(8)} ${module}: ${message}`,
    ...remedies.slice(0, REMEDIES_SHOWN).map((remedy) => `           ${remedy}`),
  ];
}
