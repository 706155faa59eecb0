// What every benchmark shares: medians with their range, and aims that are reported whether they
// are met or not.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface Sample {
  median: number;
  least: number;
  most: number;
}

/** Median and range of a series. */
export function sampleOf(values: readonly number[]): Sample {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const median = sorted.length % 2 === 1 ? sorted[middle] : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
  return { median: median ?? 0, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 };
}

/** The value that 95 of 100 do not exceed. */
export function p95(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1] ?? 0;
}

/** `12.3 (10.1 to 15.0)` with a unit. */
export function show({ median, least, most }: Sample, unit: string, digits = 0): string {
  return `${median.toFixed(digits)} ${unit} (${least.toFixed(digits)} to ${most.toFixed(digits)})`;
}

/** Ticks of /proc/PID/stat in a second. */
let ticks = 0;

/** User and system time of a process so far, in seconds. */
export function cpuSecondsOf(pid: number): number {
  ticks ||= Number(execFileSync('getconf', ['CLK_TCK']).toString());
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}

/** Resident memory of a process, in megabytes. */
export function residentMb(pid: number): number {
  const [, resident = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (Number(resident) * 1024) / 1e6;
}

export function report(what: string, figure: string): void {
  process.stdout.write(`${what.padEnd(58)} ${figure}\n`);
}

/** One line that says the figure, the aim, and whether it is met. */
export function reportAim(
  what: string,
  value: number,
  aim: number,
  unit: string,
  { digits = 2, least = false }: { digits?: number; least?: boolean } = {},
): void {
  const verdict = (least ? value >= aim : value <= aim) ? 'met' : 'MISSED';
  const bound = least ? 'at least' : 'at most';
  report(
    what,
    `${value.toFixed(digits)} ${unit}, aim ${bound} ${aim} ${unit}: ${verdict}`
      .replaceAll(' ,', ',')
      .replaceAll(' :', ':'),
  );
}

/**
 * How often the workers together get their work done in a second, each again and again for that
 * long.
 */
export async function perSecond(workers: readonly (() => Promise<unknown>)[], forMs = 4_000): Promise<number> {
  const begun = performance.now();
  let done = 0;
  await Promise.all(
    workers.map(async (work) => {
      while (performance.now() - begun < forMs) {
        await work();
        done += 1;
      }
    }),
  );
  return (done * 1000) / (performance.now() - begun);
}
