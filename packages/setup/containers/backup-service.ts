// Runs the backup service of the stack in containers. Without BACKUP_TARGET it only keeps the
// container running, for scripts/backup.sh.

import { createServer } from 'node:http';
import { z } from 'zod';
import { BACKUP_VARIABLE } from '@holdfast/backup/handover';
import { takenHandover } from '@holdfast/kit/command';
import { jsonLog } from '@holdfast/kit/log';
import { stopInOrder } from '@holdfast/kit/service';
import { runBackupService } from '@holdfast/stack/proof/service-process';
import { containerSource, readStack, writeSettings } from './backup.ts';
import { readPlaces } from './places.ts';
import { BACKUP_STACK_VARIABLE } from './role-settings.ts';

/** Returns at once; the service runs until it is stopped. */
export function runContainerBackupService(environment: NodeJS.ProcessEnv): void {
  const variables = takenHandover(
    environment,
    BACKUP_STACK_VARIABLE,
    z.record(z.string(), z.string()),
    'start this through Docker Compose',
  );
  if (environment[BACKUP_VARIABLE] === undefined) {
    const { places } = readPlaces(variables);
    idle(places.listen, places.ports.backup);
    return;
  }
  const stack = readStack(variables);
  const file = writeSettings(variables, stack);
  runBackupService(environment, ({ home }) => containerSource(home, stack, file));
}

function idle(address: string, port: number): void {
  const log = jsonLog({ role: 'backup' });
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/ping' ? 200 : 404).end();
  });
  server.listen(port, address, () => log.info('backup.idle', { reason: 'BACKUP_TARGET is not set' }));
  stopInOrder(log, 'backup', async () => {
    server.closeAllConnections();
    server.close();
  });
}
