// What a core process does as one node of several: waits for what the first one makes, and connects
// with NATS, whose certificate the first one issues.

import { mkdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type ClusterOptions,
  CORE_DATABASE_MIGRATED,
  CORE_MIGRATIONS,
  missingFromFirstNode,
  type WorkingNodes,
} from '@holdfast/core';
import type { CoreHandover } from '@holdfast/core/handover';
import { AppError, explainFileError, messageOf } from '@holdfast/kit/app-error';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import { missingMigration } from '@holdfast/kit/migrate';
import { NotReady, onceDaily, waitFor } from '@holdfast/kit/retry';
import { MINUTE_MS } from '@holdfast/kit/time';
import { ensureServiceCertificate } from '@holdfast/pki/server-certificate';

const LOOK_AGAIN_MS = 250;
const STEADY = { now: () => performance.now(), pause: () => delay(LOOK_AGAIN_MS) };
const ONLY_PROCESS = {
  withinMs: MINUTE_MS,
  remedy: 'give each node a number of its own (CORE_NODE), and start it once',
};
const FIRST_NODE = {
  what: 'first node (core)',
  withinMs: 10 * MINUTE_MS,
  remedy: 'read the log of the first node (core). All nodes need the same files and the same database',
};

/**
 * Returns when the first node has migrated the database and made the files that all nodes share.
 * Says every few seconds what is missing. Rejects with a StackError after ten minutes, and at once
 * with `conflict` when a newer release has migrated the database.
 */
export async function firstNode({ directory }: CoreHandover, run: RunSql, log: Log): Promise<void> {
  const waiting = (_: string, missing: string): void => log.info('core.waits_for_first_node', { missing });
  await waitFor({ ...STEADY, waiting }, FIRST_NODE, async () => {
    const missing = missingFromFirstNode(directory, new Date()) ?? (await missingMigrations(run));
    if (missing !== undefined) throw new NotReady(missing);
  });
}

async function missingMigrations(run: RunSql): Promise<string | undefined> {
  try {
    const next = await run((sql) => missingMigration(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED));
    return next === undefined ? undefined : `migration ${next.number} of the database is missing`;
  } catch (error) {
    // A newer release has used it: waiting does not help.
    if (error instanceof AppError && error.code === 'conflict') throw error;
    // Rule `waitForDatabase`: it is not there yet, or has no table yet.
    return `the database does not answer: ${messageOf(error)}`;
  }
}

/**
 * Returns when no other process works as this node: what one of them sends would be lost, as nodes
 * are told apart by name. To be called when this one has its session. Rejects with a StackError
 * after a minute.
 */
export async function onlyProcess(
  { node, run }: Pick<ClusterOptions, 'node' | 'run'>,
  working: WorkingNodes,
  log: Log,
  surroundings: { now: () => number; pause: () => Promise<void> } = STEADY,
): Promise<void> {
  const waiting = (): void => log.warn('core.node_runs_twice', { node });
  await waitFor({ ...surroundings, waiting }, { ...ONLY_PROCESS, what: `place for node ${node}` }, async () => {
    if ((await working()).some((other) => other.node === node && other.run !== run))
      throw new NotReady('another process is this node');
  });
}

/** The client of the message server is loaded only where there are several nodes. */
export async function clusterOf({ cluster }: CoreHandover, log: Log): Promise<ClusterOptions | undefined> {
  if (cluster === undefined) return undefined;
  const { NatsBus } = await import('@holdfast/core/nats-bus');
  const { node, index, directory, nats, host = node } = cluster;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { url, username, password } = nats;
  return {
    node,
    run: crypto.randomUUID(),
    index,
    host,
    directory,
    bus: new NatsBus({ url, username, password, ca: readCa(nats.caFile), node, log }),
  };
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw explainFileError(error, file);
  }
}

/**
 * Issues the certificate of the NATS server, where that is for this node to do. Returns what renews
 * it, to be called often.
 */
export async function natsCertificate({ directory, cluster }: CoreHandover, log: Log): Promise<() => Promise<void>> {
  const { url, certificateDirectory } = cluster?.nats ?? {};
  if (url === undefined || certificateDirectory === undefined) return () => Promise.resolve();
  const names = [new URL(url).hostname, 'localhost'];
  const ensure = async (): Promise<void> => {
    if (await ensureServiceCertificate(directory, certificateDirectory, names, new Date()))
      log.info('certificate.issued', { directory: certificateDirectory, names });
  };
  await ensure();
  return onceDaily(ensure, 'certificate.renewal_failed', () => new Date(), log);
}
