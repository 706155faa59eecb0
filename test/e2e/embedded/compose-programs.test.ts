// What the compose files give each of our containers is what its program wants: nothing is missing,
// nothing contradicts.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRole, planContainer } from '@holdfast/setup/containers/plan';
import { composeObstacle, ComposeRoot, REPOSITORY, type Service } from '../../../packages/setup/test/compose.ts';
import { describeProblem } from '../../../shared/settings/setting.ts';

const obstacle = composeObstacle();
const OURS = /^localhost\/holdfast:/;

/** `docker compose config` doubles every $. */
const environmentOf = ({ environment = {} }: Service): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, (value ?? '').replaceAll('$$', '$')]));

describe.skipIf(obstacle !== undefined)(
  obstacle === undefined ? 'containers of ours' : `containers of ours: not asked, because ${obstacle}`,
  () => {
    let root: ComposeRoot;

    beforeAll(() => {
      root = new ComposeRoot();
      const made = root.setUp(['--light', '--address', 'cot.example.org']);
      if (made.status !== 0) throw new Error(made.stderr);
      // Which the set-up makes for production alone.
      root.writeEnv(`${root.readEnv()}IDENTITY_BOOTSTRAP_TOKEN=${'b'.repeat(32)}\n`);
    });
    afterAll(() => root.remove());

    it.each([
      { mode: 'subdomain', layers: ['base', 'light', 'runtime'], services: 8 },
      { mode: 'subdomain', layers: ['base', 'light', 'dev', 'runtime', 'test'], services: 8 },
      { mode: 'direct', layers: ['base', 'light', 'runtime'], services: 8 },
      { mode: 'direct', layers: ['base', 'light', 'direct', 'test'], services: 7 },
      { mode: 'subdomain', layers: ['base', 'runtime'], services: 6 },
    ])('find all they need in $mode mode with $layers', ({ mode, layers, services }) => {
      root.writeEnv(root.readEnv().replace(/^DEPLOY_MODE=.*$/m, `DEPLOY_MODE=${mode}`));
      const ours = Object.entries(root.config(layers).services).filter(([, { image }]) => OURS.test(image));
      expect(ours.length).toBe(services);
      for (const [name, service] of ours) {
        const role = service.command?.[0] ?? '';
        if (!isRole(role)) throw new Error(`${name} has the unknown role ${role}`);
        const plan = planContainer(REPOSITORY, role, environmentOf(service));
        expect([name, Array.isArray(plan) ? plan.map(describeProblem) : []]).toEqual([name, []]);
      }
    });

    it('and an odd password of a person arrives as it was written', () => {
      const odd = String.raw`p$HOME "a"\n #1`;
      root.writeEnv(root.readEnv().replace(/^CORE_DB_PASSWORD=.*$/m, () => `CORE_DB_PASSWORD='${odd}'`));
      const { services } = root.config(['base', 'light']);
      const { environment } = planOf('core', services['core']);
      expect(decodeURIComponent(new URL(databaseUrlIn(environment['HOLDFAST_CORE'])).password)).toBe(odd);
    });
  },
);

function planOf(role: 'core', service: Service | undefined): { environment: Record<string, string> } {
  if (service === undefined) throw new Error(`there is no ${role}`);
  const plan = planContainer(REPOSITORY, role, environmentOf(service));
  if (Array.isArray(plan)) throw new Error(plan.map(describeProblem).join('\n'));
  if (plan.role === 'database') throw new Error('not a database');
  return plan;
}

const databaseUrlIn = (handover = ''): string => (JSON.parse(handover) as { databaseUrl: string }).databaseUrl;
