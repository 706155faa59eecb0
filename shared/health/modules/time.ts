// Compares this machine's clock with the clocks of the database and the identity provider.

import { rounded } from '@holdfast/kit/format';
import type { ClockSource } from '../../host/port.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { healthModule } from '../module.ts';

interface ClockOffset {
  name: string;
  /** Positive if that clock is ahead of ours. */
  offset_seconds: number;
}

export const time = healthModule<{ worst_offset_seconds: number; clocks: ClockOffset[] }>({
  name: 'time',
  isLocal: true,

  remedy: [
    'Turn on synchronization with sudo timedatectl set-ntp true. Check with timedatectl that the clock is synchronized (containers share the clock of their host).',
    'If it stays unsynchronized, allow outgoing UDP port 123, or set a time server in /etc/systemd/timesyncd.conf and run sudo systemctl restart systemd-timesyncd.',
    'If the clock in the alert belongs to another machine, do the same there.',
  ],

  async read({ clocks, now }) {
    const offsets = await Promise.all(clocks.map((clock) => compare(clock, now)));
    const worst = Math.max(0, ...offsets.map(({ offset_seconds }) => Math.abs(offset_seconds)));
    return { worst_offset_seconds: worst, clocks: offsets };
  },

  findings({ clocks }, thresholds) {
    if (clocks.length === 0) return [{ kind: 'fact', status: 'warning', says: 'no other clock to compare with' }];
    return clocks.map(({ name, offset_seconds: offset }): Finding => ({
      kind: 'figure',
      subject: `the clock of the ${name}`,
      value: Math.abs(offset),
      limits: limitsOf(thresholds),
      says: `${Math.abs(offset)} s ${offset > 0 ? 'ahead of' : 'behind'} this machine`,
      format: (limit) => `${limit} s`,
    }));
  },

  well: ({ clocks, worst_offset_seconds }) =>
    `Within ${worst_offset_seconds} s of the clock of the ${clocks.map(({ name }) => name).join(' and the ')}.`,

  trend: {
    name: 'largest offset',
    unit: 'seconds',
    limits: limitsOf,
    figureOf: ({ worst_offset_seconds, clocks }) => (clocks.length === 0 ? null : worst_offset_seconds),
  },
});

/**
 * Compares with the midpoint between request and answer; an offset within the clock's resolution
 * does not count.
 */
async function compare({ name, readMs, resolutionMs }: ClockSource, now: () => Date): Promise<ClockOffset> {
  const requested = now().getTime();
  const theirs = await readMs();
  const answered = now().getTime();
  const offset = theirs + resolutionMs / 2 - (requested + answered) / 2;
  const certain = Math.max(0, Math.abs(offset) - resolutionMs / 2 - (answered - requested) / 2);
  return { name, offset_seconds: rounded((Math.sign(offset) * certain) / 1000, 3) };
}
