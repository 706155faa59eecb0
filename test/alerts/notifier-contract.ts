// What every notifier does, whatever the service behind it does.

import { expect, it } from 'vitest';
import type { Message, Notifier } from '../../shared/alerts/port.ts';

export const MESSAGE: Message = {
  id: 'alert-7f3a',
  subject: 'Holdfast: database is critical',
  text: 'The database grew over 40 GB.\nIt grows by 2 GB a day.\n',
  html: '<p>The database grew over <b>40 GB</b>.</p>\n<p>It grows by 2 GB a day.</p>\n',
  brief: 'Holdfast: database critical, over 40 GB',
};

/** A service in one of its moods, and what must not be seen of it. */
export interface Case {
  notifier: Notifier;
  recipients: string[];
  secrets: string[];
}

/** Each mood ends within `endsWithinMs`, with an answer for each recipient. */
export function notifierContract(moods: Record<string, () => Promise<Case>>, endsWithinMs: number): void {
  it.each(Object.entries(moods))(
    'answers for each recipient, in order and without a secret, when %s',
    async (_, make) => {
      const { notifier, recipients, secrets } = await make();
      const begun = performance.now();
      const outcomes = await notifier.send(MESSAGE, recipients);
      expect(performance.now() - begun).toBeLessThan(endsWithinMs);
      expect(outcomes.map(({ recipient }) => recipient)).toEqual(recipients);
      for (const { detail } of outcomes) {
        expect(detail).toMatch(/^[^\p{Cc}\p{Zl}\p{Zp}]{5,400}$/u);
        for (const secret of secrets) expect(detail).not.toContain(secret);
      }
      expect(await notifier.send(MESSAGE, [])).toEqual([]);
    },
  );
}
