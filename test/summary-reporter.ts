// Ends a run with the line that .ci/run promises: "N passed, N failed", with the skipped ones where there are any.

import type { Reporter, TestModule } from 'vitest/node';

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) count.failed++;
      // Of a group whose preparation failed no test has run; they would be counted as skipped alone.
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) count.failed++;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed' || state === 'failed' || state === 'skipped') count[state]++;
      }
    }
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : '';
    process.on('exit', () => process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`));
  }
}
