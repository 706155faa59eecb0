// A container that runs, with nothing to complain about.

import type { Container } from '../../shared/host/port.ts';

export function runningContainer(name: string, more: Partial<Container> = {}): Container {
  return {
    name,
    image: `${name}:1`,
    state: 'running',
    health: undefined,
    exit_code: undefined,
    kept_running: true,
    out_of_memory: false,
    restarts: 0,
    mounts: [],
    hosts: [],
    ...more,
  };
}
