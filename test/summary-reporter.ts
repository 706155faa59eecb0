// Ends a run with what was skipped and why, then the line that .ci/run promises: "N passed, N failed".

import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: errors.length, skipped: 0 };
    const skipped = new Map<string, number>();
    const allowed = allowedSkips();
    const refused: string[] = [];
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) count.failed++;
      // Of a group whose preparation failed no test has run; they would be counted as skipped alone.
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) count.failed++;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed' || state === 'failed' || state === 'skipped') count[state]++;
        if (state !== 'skipped') continue;
        const file = relative(process.cwd(), module.moduleId);
        const parts = test.fullName.split(' > ').map((part) => `${file}: ${part}`);
        if (allowed !== undefined && !parts.some((part) => allowed.has(part)))
          refused.push(`${file}: ${test.fullName}`);
        const group = `${file}: ${groupOf(test)}`;
        skipped.set(group, (skipped.get(group) ?? 0) + 1);
      }
    }
    count.failed += refused.length;
    if (refused.length > 0) process.exitCode = 1;
    const ending = count.skipped > 0 ? `, ${count.skipped} skipped` : '';
    const lines = [
      ...skippedLines(skipped),
      ...refusedLines(refused),
      `${count.passed} passed, ${count.failed} failed${ending}`,
    ];
    process.on('exit', () => process.stdout.write(`\n${lines.join('\n')}\n`));
  }
}

/**
 * Tests and groups that may be skipped, from the file HOLDFAST_SKIPPED_ALLOWED: `FILE: NAME` a line. Undefined allows
 * everything.
 * @throws {Error} if the file can't be read
 */
function allowedSkips(): Set<string> | undefined {
  const file = process.env['HOLDFAST_SKIPPED_ALLOWED'];
  return file === undefined ? undefined : new Set(readFileSync(file, 'utf8').split('\n'));
}

/** The outermost group; its name says why it was skipped. */
function groupOf(test: TestCase): string {
  let name = test.name;
  for (let { parent } = test; parent.type === 'suite'; parent = parent.parent) name = parent.name;
  return name;
}

function skippedLines(skipped: ReadonlyMap<string, number>): string[] {
  const missing = (process.env['HOLDFAST_NOT_INSTALLED'] ?? '').split('\n').filter((line) => line !== '');
  return [
    ...(skipped.size > 0 ? ['Skipped:', ...[...skipped].map(([group, number]) => `  ${number} in ${group}`)] : []),
    ...(missing.length > 0 ? ['Not tested here:', ...new Set(missing.map((line) => `  ${line}`))] : []),
  ];
}

function refusedLines(refused: readonly string[]): string[] {
  if (refused.length === 0) return [];
  const remedy = `install what they need, or name them in ${process.env['HOLDFAST_SKIPPED_ALLOWED']}`;
  return [`Failed, because these must not be skipped here (${remedy}):`, ...refused.map((name) => `  ${name}`)];
}
