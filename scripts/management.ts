// The Node host: settings, the app, its listeners, its database. Runs until SIGTERM or SIGINT.

import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import { createApp } from '../functions/app.ts';
import { assetDirectory } from '../shared/adapters/asset-directory.ts';
import { type JsonLog, jsonLog } from '../shared/adapters/json-log.ts';
import { logDirectory } from '../shared/adapters/log-directory.ts';
import { pick } from '../shared/config/load-settings.ts';
import { describeProblem } from '../shared/config/problem.ts';
import { SETTING_NAMES, SETTINGS } from '../shared/config/settings.ts';
import { showSettings } from '../shared/config/shown-settings.ts';
import { coversLoopback } from '../shared/domain/host-name.ts';
import { withRequestLog } from '../shared/http/request-log.ts';
import { type Configuration, readConfiguration } from '../shared/runtime/configuration.ts';
import { forgetPostgresVariables, type Handover, readHandover } from '../shared/runtime/handover.ts';
import { type Listener, serveApp } from '../shared/runtime/node-server.ts';
import { RELEASE } from '../shared/runtime/release.ts';
import { keepState } from '../shared/runtime/state-keeper.ts';
import { messageOf } from '../shared/domain/thrown.ts';

const GRACE_MS = 8_000;
const home = resolve(import.meta.dirname, '..');
const log = jsonLog({ role: 'management' });

async function main(): Promise<void> {
  forgetPostgresVariables(process.env);
  const handover = readHandover(process.env);
  const configuration = readConfiguration(home, handover.layers, handover.mode);
  if (configuration.problems.length > 0) {
    process.stderr.write(
      `Holdfast does not start:\n${configuration.problems.map((p) => `  ${describeProblem(p)}\n`).join('')}`,
    );
    process.exit(1);
  }
  const startedAt = new Date();
  const app = createApp({
    release: RELEASE,
    startedAt,
    settings: configuration.settings,
    settingsShown: showSettings(configuration.settings, configuration.sources),
    thresholds: configuration.thresholds,
    log,
    logFiles: logDirectory(configuration.settings.LOG_DIR),
    assets: assetDirectory(join(home, 'node_modules/swagger-ui-dist')),
  });
  const listeners = listenersOf(configuration, handover);
  const server = await serveApp(
    withRequestLog(app.fetch, log, () => performance.now()),
    listeners,
    log,
  );
  process.send?.('listening');
  log.info('management.listening', {
    listeners: listeners.map(({ address, port, tls }) => ({ address, port, tls: tls !== undefined })),
  });

  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) {
    process.once(signal, () => {
      if (stopping.signal.aborted) return;
      log.info('management.stopping', { signal });
      stopping.abort();
      void server.close(GRACE_MS).then(() => leave(log, 0));
    });
  }
  const url = configuration.settings.DATABASE_URL;
  if (url !== undefined) {
    const record = { startedAt, release: RELEASE, settingsHash: hashOf(handover) };
    await keepState(url, record, log, stopping.signal);
  }
}

function listenersOf({ settings }: Configuration, { tls }: Handover): Listener[] {
  const plain = { address: settings.LISTEN_ADDRESS, port: settings.API_PORT };
  if (tls === undefined) return [plain];
  const secure = { address: tls.address, port: settings.API_PORT, tls };
  return coversLoopback(tls.address) ? [secure] : [plain, secure];
}

function hashOf({ layers }: Handover): string {
  const open = SETTING_NAMES.filter((name) => !SETTINGS[name].kind.secret);
  const values = open.map((name) => [name, pick(layers, name)?.value ?? null]);
  return createHash('sha256').update(JSON.stringify(values)).digest('hex');
}

function leave(lines: JsonLog, code: number): never {
  lines.flush();
  process.exit(code);
}

main().catch((error: unknown) => {
  log.error('management.failed', { error: messageOf(error) });
  leave(log, 1);
});
