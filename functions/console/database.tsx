// GET /database: how large the core's database is, until when there is room, what fills it, and what to do about it. What one
// database does not tell is said in its place.

import { limitsOf } from '../../shared/domain/evaluate.ts';
import type { HoldingPolicy } from '../../shared/domain/holding-policy.ts';
import { DAY_MS } from '../../shared/domain/forecast.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { holdingPolicy } from '../../shared/verbs/growth-policy.ts';
import { type GrowthReport, growthReport } from '../../shared/verbs/growth-report.ts';
import { inTime } from '../../shared/verbs/in-time.ts';
import { clockOf } from '../pages/clock.ts';
import { attempt } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { DatabaseFacts } from './database-facts.tsx';
import { DatabaseFillers } from './database-fillers.tsx';
import { DatabaseNext } from './database-next.tsx';
import { DatabaseSizes } from './database-sizes.tsx';
import { DatabaseTables } from './database-tables.tsx';
import { DatabaseTabs } from './database-tabs.tsx';

export const RANGES = [7, 30, 90, 400] as const;
const TABLES_WITHIN_MS = 800;
/** Of the warning: at it is too much already. */
const BELOW = 0.95;
const POLICY_WITHIN_MS = 500;
const SAMPLES_WITHIN_MS = 3_000;

/** Adds the route of this file. */
export function databasePage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/database', { access: 'viewer' }, async function showDatabase(c) {
    const days = rangeOf(c);
    const clock = clockOf(deps);
    const since = new Date(clock.now.getTime() - days * DAY_MS).toISOString();
    const own = deps.thresholds.modules['database'];
    const limits = limitsOf(own ?? { interval: 60, alert_min_level: 'warning' });
    const report = await growthReport(deps);
    const [states, policy, samples, tables] = await Promise.all([
      deps.health.states(),
      attempt(() => policyBelow(deps, report, limits.warning)),
      attempt(() => inTime(SAMPLES_WITHIN_MS, "Holdfast's own database", () => deps.growthBook.samples(since))),
      attempt(() => inTime(TABLES_WITHIN_MS, "The core's database", () => deps.vacuumFacts.tables())),
    ]);
    const measurementOf = (name: string) => states.find(({ module }) => module === name)?.measurement ?? null;
    const [database, autovacuum] = [measurementOf('database'), measurementOf('autovacuum')];
    const body = (
      <>
        <DatabaseTabs current="/database" />
        <div id="database" data-live="/api/health?view=status" data-every="30">
          <DatabaseNext database={database} thresholds={own} policy={policy.done} tables={tables} />
          <DatabaseSizes days={days} samples={samples} report={report} limits={limits} clock={clock} />
          <DatabaseFillers database={database} />
          <DatabaseTables
            autovacuum={autovacuum}
            tables={tables}
            least={deps.thresholds.AUTOVACUUM_MIN_DEAD_TUPLES}
            all={c.req.query('tables') === 'all'}
            clock={clock}
          />
          <DatabaseFacts database={database} report={report} clock={clock} />
        </div>
        <noscript>
          <p class="fine">Without scripts this page does not follow what happens: reload it to see more.</p>
        </noscript>
      </>
    );
    return framed(c, deps, { title: 'Database', current: 'database', body });
  });
}

/** Below the warning of its size, and of its disk. */
function policyBelow(deps: Deps, report: GrowthReport, warningBytes: number): Promise<HoldingPolicy> {
  const percent = Number(deps.thresholds.modules['disk']?.['warning']);
  return inTime(POLICY_WITHIN_MS, 'Holdfast', () =>
    holdingPolicy(deps.monitored, report, percent, warningBytes * BELOW),
  );
}

function rangeOf(c: PageContext): (typeof RANGES)[number] {
  return RANGES.find((days) => String(days) === c.req.query('days')) ?? 30;
}
