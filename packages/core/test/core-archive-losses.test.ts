// How losses of the archive are told and written.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { HOUR_MS } from '@holdfast/kit/time';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import type { Loss } from '../store/tables.ts';
import { Losses, unwrittenLosses } from '../archive/losses.ts';
import { memoryLosses, memoryUnwritten, RECEIVED_MS } from './fake-core-archive.ts';

function world(unwritten = memoryUnwritten()) {
  const store = memoryLosses();
  const log = memoryLog();
  const state = { nowMs: RECEIVED_MS, isUnavailable: false, failsOnce: false };
  const losses = new Losses({
    store: {
      id: () => store.id(),
      async save(loss: Loss) {
        await store.save(loss);
        if (!state.failsOnce) return;
        state.failsOnce = false;
        throw new AppError('unavailable', 'the answer was lost');
      },
    },
    unwritten,
    isUnavailable: () => state.isUnavailable,
    log,
    now: () => new Date(state.nowMs),
  });
  const rows = (): [number, string][] => [...store.rows.values()].map(({ events, reason }) => [events, reason]);
  const reported = () =>
    log.events.filter(({ event }) => event === 'archive.lost').map(({ fields }) => fields['events']);
  return { losses, state, rows, told: reported, log };
}

describe('losses', () => {
  it('are told at once, then summed up, so that a flood of them is a few lines', async () => {
    const { losses, state, told: reported } = world();
    for (let n = 0; n < 10_000; n++) {
      losses.add(1, 'away');
      state.nowMs += 2;
    }
    expect(reported()).toEqual([1, 5000]);
    await losses.close();
    expect(reported()).toEqual([1, 5000, 4999]);
    expect(losses.total).toBe(10_000);
  });

  it('have a row for each reason, and one for all reasons beyond twenty', async () => {
    const { losses, rows } = world();
    for (let n = 0; n < 1000; n++) losses.add(1, `reason ${n}`);
    await losses.close();
    expect(rows()).toHaveLength(21);
    expect(rows().reduce((sum, [events]) => sum + events, 0)).toBe(1000);
    expect(rows().at(-1)).toEqual([980, 'other reasons; core.log has some of them']);
  });

  it('are not written while the database is away, and once when an answer is lost', async () => {
    const { losses, state, rows, log } = world();
    state.isUnavailable = true;
    losses.add(5, 'away');
    await losses.close();
    expect(rows()).toEqual([]);
    Object.assign(state, { isUnavailable: false, failsOnce: true });
    await losses.close();
    await losses.close();
    expect(rows()).toEqual([[5, 'away']]);
    expect(log.events.map(({ event }) => event)).toContain('archive.losses_not_written');
  });

  it('that the database had not taken at the end are written after the next start, once', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-losses-'));
    const file = join(directory, 'unwritten-losses.json');
    const log = memoryLog();
    const { losses, state } = world(unwrittenLosses(directory, log));
    state.isUnavailable = true;
    losses.add(5, 'away');
    await losses.close();
    expect(existsSync(file)).toBe(true);

    const next = world(unwrittenLosses(directory, log));
    next.losses.add(2, 'away');
    await next.losses.close();
    expect([next.rows(), next.losses.total, existsSync(file)]).toEqual([
      [
        [5, 'away'],
        [2, 'away'],
      ],
      2,
      false,
    ]);
    writeFileSync(file, '{"half":');
    expect(unwrittenLosses(directory, log).read()).toEqual([]);
    expect(log.events).toMatchObject([{ event: 'archive.losses_unreadable', fields: { path: file } }]);
    rmSync(directory, { recursive: true });
  });

  it('of another outage, or of another hour, have a row of their own', async () => {
    const { losses, state, rows } = world();
    losses.add(1, 'away');
    losses.outageEnded();
    await losses.close();
    losses.add(2, 'away');
    await losses.close();
    losses.add(3, 'away');
    await losses.close();
    state.nowMs += HOUR_MS + 1;
    losses.add(4, 'away');
    await losses.close();
    expect(rows()).toEqual([
      [1, 'away'],
      [5, 'away'],
      [4, 'away'],
    ]);
  });
});
