// Every sender that passes the start is one that mail really comes from.

import { afterEach, expect, it } from 'vitest';
import { readSender } from '@holdfast/kit/addresses';
import { Secret } from '@holdfast/kit/secret';
import { smtpNotifier } from '../../shared/alerts/smtp.ts';
import { closeMailServers, mailSink, parseMail } from './fake-mail-sink.ts';
import { SENDERS } from './fake-senders.ts';
import { MESSAGE } from './notifier-contract.ts';

afterEach(closeMailServers);

it.each(SENDERS)('mail comes from %s', async (from) => {
  const { port, taken } = await mailSink();
  const sender = readSender(from);
  if ('fault' in sender) throw new Error(sender.fault);
  const notifier = smtpNotifier({ url: new Secret(`smtp://127.0.0.1:${port}`), from });
  expect(await notifier.send(MESSAGE, ['duty@example.org'])).toMatchObject([{ accepted: true }]);
  expect(taken[0]?.from).toBe(sender.address);
  const header = parseMail(taken[0]?.raw ?? '').headers.get('from') ?? '';
  expect(header === sender.address || header.endsWith(` <${sender.address}>`)).toBe(true);
});
