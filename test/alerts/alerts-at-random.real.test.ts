// Alerts of a process whose database comes and goes, whose answers get lost, and that is restarted at any moment: what
// reaches people is exactly what the engine alone would have told them, once each.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { alertSent, reduce, UNREPORTED } from '../../shared/alerts/rules.ts';
import type { AlertTable } from '../../shared/alerts/table.ts';
import { type Status, STATUSES } from '../../shared/settings/status.ts';
import { alertDatabase } from '../e2e/embedded/alert-database.ts';
import { accepted, evaluation, newModule } from './alerts-contract.ts';
import { alertProcess, type AlertProcess, type Line } from './fake-alert-processes.ts';

const database = alertDatabase();
const { place } = database;
let table: AlertTable;
beforeAll(() => {
  table = database.table();
});

/** Without a cooldown, so that every change of level shows. */
const POLICY = { cooldownSeconds: 0, anybody: true };

type Step = { line: Line['state'] } | { status: Status } | 'restart' | 'pass';

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ status: fc.constantFrom(...STATUSES) }) },
  { weight: 2, arbitrary: fc.record({ line: fc.constantFrom('good' as const, 'cut' as const, 'lost' as const) }) },
  { weight: 1, arbitrary: fc.constantFrom('restart' as const, 'pass' as const) },
);

/** What the engine alone tells, when everything that it raises arrives at once. */
function reportedAlone(steps: readonly Step[]): Status[] {
  let state = UNREPORTED;
  return steps.flatMap((step, index) => {
    if (typeof step === 'string' || !('status' in step)) return [];
    const { status } = step;
    const made = { status, shouldAlert: status !== 'ok', atMs: index, failuresInRow: 0, pollsInRow: 0 };
    const next = reduce(state, made, POLICY, String(index));
    state = alertSent(next.state, String(index), index);
    return next.decision.kind === 'raise' ? status : [];
  });
}

/** Sends what is due; each message leaves once for each time that it is given out. */
async function send({ alerts }: AlertProcess, module: string, sent: { id: string; level: Status }[]): Promise<void> {
  for (const alert of await alerts.takeDue(1000)) {
    if (alert.module === module) sent.push({ id: alert.id, level: alert.level });
    await alerts.settle(alert, accepted());
  }
}

describe('a process in a bad world', () => {
  it('tells people what the engine alone would tell them, each thing once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 30 }), async (steps) => {
        const module = newModule();
        const file = join(place, `${randomUUID()}.json`);
        const sent: { id: string; level: Status }[] = [];
        let process = alertProcess(table, POLICY, file);
        for (const step of steps) {
          if (step === 'restart') {
            const { line } = process;
            await process.end();
            process = alertProcess(table, POLICY, file);
            process.line.state = line.state;
          } else if (step === 'pass') process.later(3000);
          else if ('line' in step) process.line.state = step.line;
          else await process.alerts.observe(evaluation(module, step.status));
          await send(process, module, sent);
        }
        process.line.state = 'good';
        process.later(3000);
        await send(process, module, sent);
        expect(sent.map(({ level }) => level)).toEqual(reportedAlone(steps));
        expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length);
        const { results } = await process.alerts.list({ module }, 0, 100);
        expect(results.map(({ state }) => state)).toEqual(results.map(() => 'sent'));
      }),
      { numRuns: 100 },
    );
  });
});
