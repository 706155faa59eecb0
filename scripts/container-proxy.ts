// The role `container-proxy` of our image: a read-only door to the socket of the container engine, for management. Runs until
// SIGTERM or SIGINT.

import { jsonLog } from '@holdfast/kit/log';
import { containerProxy } from '@holdfast/setup/containers/container-proxy';

/** Where compose.runtime.yaml mounts it. */
const SOCKET = '/var/run/docker.sock';
const PORT = 2375;
const PROJECT = 'holdfast';

const log = jsonLog({ role: 'container-proxy' });
const project = process.env['COMPOSE_PROJECT_NAME']?.trim() || PROJECT;
const server = containerProxy({
  socket: SOCKET,
  project,
  refused: (refusal) => log.warn('container-proxy.refused', { ...refusal }),
});

server.on('error', (error) => {
  log.error('container-proxy.failed', { error: error.message });
  leave(1);
});
server.listen(PORT, '0.0.0.0', () => log.info('container-proxy.listening', { port: PORT, socket: SOCKET, project }));

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    log.info('container-proxy.stopping', { signal });
    leave(0);
  });

function leave(code: number): never {
  log.flush();
  process.exit(code);
}
