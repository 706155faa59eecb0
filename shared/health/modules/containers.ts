// Checks the state and health of each container, as the runtime reports them; skipped without a
// runtime.

import { counted } from '@holdfast/kit/format';
import type { Container } from '../../host/port.ts';
import type { Status } from '../../settings/status.ts';
import type { Finding } from '../evaluate.ts';
import { hasJustStarted, healthModule } from '../module.ts';

interface ContainersData {
  runtime: boolean;
  /** True while the containers of this stack are being started one by one. */
  starting: boolean;
  container_count: number;
  containers: Container[];
}

export const containers = healthModule<ContainersData>({
  name: 'containers',
  isLocal: true,

  remedy: [
    'See which container stopped and why: docker compose ps --all, then docker compose logs --tail 100 NAME.',
    'Start it again with docker compose up -d NAME.',
    'If it ran out of memory, raise its memory limit in your own compose file named in COMPOSE_FILE, or add memory to the machine.',
    'If the runtime itself does not answer, check systemctl status docker and the setting CONTAINER_RUNTIME_URL.',
  ],

  async read({ containers: runtime, now, startedAt }) {
    const list = (await runtime?.list()) ?? [];
    const starting = hasJustStarted(startedAt, now());
    return { runtime: runtime !== undefined, starting, container_count: list.length, containers: list };
  },

  findings({ runtime, starting, containers: list }) {
    if (runtime && list.length === 0)
      return [{ kind: 'fact', status: 'critical', says: 'the runtime lists no container of this stack' }];
    return list.flatMap((container): Finding[] => {
      const [status, says] = complaint(container, starting);
      return says === '' ? [] : [{ kind: 'fact', status, says: `${container.name} ${says}` }];
    });
  },

  well: ({ runtime, container_count }) =>
    runtime
      ? `${counted(container_count, 'container')}, all healthy.`
      : 'No container runtime configured (CONTAINER_RUNTIME_URL).',

  trend: {
    name: 'unhealthy',
    unit: 'count',
    figureOf: ({ runtime, starting, containers: list }) =>
      runtime ? list.filter((container) => complaint(container, starting)[1] !== '').length : null,
  },
});

function complaint(container: Container, starting: boolean): [Status, string] {
  const memory = container.out_of_memory ? ', out of memory' : '';
  switch (container.state) {
    case 'running':
      return runningComplaint(container);
    case 'restarting':
      return ['critical', `keeps restarting (${counted(container.restarts, 'time')} so far)${memory}`];
    case 'paused':
      return ['warning', 'is paused'];
    case 'created':
      return starting ? ['note', 'is not started yet'] : ['warning', 'was created but never started'];
    case 'exited':
      if (container.exit_code === 0 && !container.kept_running) return ['ok', ''];
      return ['critical', `exited with code ${container.exit_code ?? 'unknown'}${memory}`];
    default:
      return ['critical', `is ${container.state}`];
  }
}

function runningComplaint({ health }: Container): [Status, string] {
  if (health === 'unhealthy') return ['critical', 'is running, but its health check fails'];
  return health === 'starting' ? ['note', 'is starting'] : ['ok', ''];
}
