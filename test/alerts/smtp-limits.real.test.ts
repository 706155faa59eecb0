// How long a mail server may take for what, and which of its refusals are for good.

import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import type { SendOutcome } from '../../shared/alerts/port.ts';
import { smtpNotifier, type SmtpOptions } from '../../shared/alerts/smtp.ts';
import { issue, type Issued } from '../support/certificates.ts';
import { closeMailServers, mailSink, rawServer, scripted } from './fake-mail-sink.ts';
import { MESSAGE } from './notifier-contract.ts';

const TO = ['duty@example.org', 'deputy@example.org'];
const TALKS = {
  EHLO: '250-here\r\n250 SIZE\r\n',
  'MAIL FROM': '250 ok\r\n',
  'RCPT TO': '250 ok\r\n',
  DATA: '354 go on\r\n',
};

let certificate: Issued;
beforeAll(async () => {
  certificate = await issue('mail', undefined, { names: ['127.0.0.1'] });
});
afterEach(closeMailServers);

const send = (port: number, options: Partial<SmtpOptions> = {}, scheme = 'smtp://'): Promise<SendOutcome[]> => {
  const url = new Secret(`${scheme}127.0.0.1:${port}`);
  return smtpNotifier({ url, from: 'a@example.org', quietMs: 300, withinMs: 2500, ...options }).send(MESSAGE, TO);
};

const details = (outcomes: SendOutcome[]): string[] => [...new Set(outcomes.map(({ detail }) => detail))];

describe('a server that looks long at a mail before it takes it', () => {
  it.each(['plain', 'STARTTLS', 'smtps'])('has time for that, %s, and gets the mail once', async (kind) => {
    const options = kind === 'plain' ? {} : { key: certificate.key, cert: certificate.pem, secure: kind === 'smtps' };
    let mails = 0;
    const { port } = await mailSink({
      ...options,
      onData: (stream, _, done) => {
        mails++;
        void stream.resume().once('end', () => setTimeout(done, 1000));
      },
    });
    const outcomes = await send(port, {}, kind === 'smtps' ? 'smtps://' : 'smtp://');
    expect(outcomes).toMatchObject([{ accepted: true }, { accepted: true }]);
    expect(mails).toBe(1);
  });

  it('has the time of the whole send and no more', async () => {
    const { port, peers } = await rawServer(scripted(TALKS));
    const begun = performance.now();
    expect(details(await send(port, { withinMs: 900 }))).toEqual([
      `127.0.0.1:${port} is too slow: it did not accept the mail within 0.9 s`,
    ]);
    expect(performance.now() - begun).toBeGreaterThan(850);
    await expect.poll(() => peers.every((peer) => peer.destroyed)).toBe(true);
  });

  it('may refuse it in the end', async () => {
    const { port } = await mailSink({
      onData: (stream, _, done) =>
        void stream
          .resume()
          .once('end', () => setTimeout(done, 600, Object.assign(new Error('Spam'), { responseCode: 554 }))),
    });
    expect(details(await send(port))).toEqual([expect.stringMatching(/rejected the mail: 554 .*Spam$/)]);
  });
});

describe('a server that drips its answers', () => {
  const drip = (answers: Record<string, string>) => (socket: Socket) => {
    const queue: string[] = [];
    const timer = setInterval(() => queue.length > 0 && socket.write(queue.shift() ?? ''), 40);
    socket.on('close', () => clearInterval(timer));
    const slow = Object.assign(Object.create(socket) as Socket, {
      write: (text: string) => queue.push(...text.split('')),
    });
    scripted(answers)(slow);
  };

  it('has a limit of its own for all commands together', async () => {
    const { port, peers } = await rawServer(drip({ ...TALKS, greeting: '220 x\r\n' }));
    const begun = performance.now();
    expect(details(await send(port, { quietMs: 5000, commandsMs: 700, withinMs: 30_000 }))).toEqual([
      `127.0.0.1:${port} is too slow: it did not accept the mail within 0.7 s`,
    ]);
    expect(performance.now() - begun).toBeLessThan(20_000);
    await expect.poll(() => peers.every((peer) => peer.destroyed)).toBe(true);
  });
});

describe('a refusal', () => {
  const answering = async (change: Record<string, string>) => {
    const { port } = await rawServer(scripted({ ...TALKS, '.': '250 ok\r\n', ...change }));
    return (await send(port)).map(({ accepted, permanent }) => ({ accepted, permanent }));
  };
  const both = (permanent: boolean | undefined) => TO.map(() => ({ accepted: false, permanent }));

  it.each([
    ['MAIL FROM', '553 5.7.1 not yours', true],
    ['MAIL FROM', '451 later', undefined],
    ['MAIL FROM', '421 shutting down', undefined],
    ['MAIL FROM', '535 5.7.8 log in', undefined],
    ['RCPT TO', '550 no such user', true],
    ['RCPT TO', '450 greylisted', undefined],
    ['DATA', '554 no', true],
    ['DATA', '451 no', undefined],
    ['.', '554 spam', true],
    ['.', '552 too large', true],
    ['.', '452 full', undefined],
    ['greeting', '554 go away', undefined],
    ['EHLO', '550 go away', undefined],
  ])('of %s with %s is for good: %s', async (command, answer, permanent) => {
    expect(await answering({ [command]: `${answer}\r\n` })).toEqual(both(permanent));
  });

  it('is for good for one recipient, for now for another, and none for a third', async () => {
    const { port } = await rawServer(
      scripted({ [`RCPT TO:<${TO[0]}`]: '550 gone\r\n', 'RCPT TO:<dep': '450 later\r\n', ...TALKS, '.': '250 ok\r\n' }),
    );
    const url = new Secret(`smtp://127.0.0.1:${port}`);
    const smtp = smtpNotifier({ url, from: 'a@example.org', quietMs: 300, withinMs: 2500 });
    expect(await smtp.send(MESSAGE, [...TO, 'chief@example.org', 'no address'])).toMatchObject([
      { accepted: false, permanent: true },
      { accepted: false, detail: expect.stringMatching(/450 later$/) },
      { accepted: true },
      { accepted: false, permanent: true, detail: 'Not an email address' },
    ]);
  });

  it('is not for good when there was no answer', async () => {
    expect((await send(1)).map(({ permanent }) => permanent)).toEqual([undefined, undefined]);
  });
});

describe('a user in SMTP_URL', () => {
  it('is left out when the server wants no login', async () => {
    const { port, taken } = await mailSink({ disabledCommands: ['AUTH', 'STARTTLS'] });
    expect(await send(port, {}, 'smtp://user:password@')).toMatchObject([{ accepted: true }, { accepted: true }]);
    expect(taken).toMatchObject([{ user: undefined }]);
  });

  it('and a server that wants a login and offers none says so', async () => {
    const { port } = await rawServer(scripted({ ...TALKS, 'MAIL FROM': '530 Authentication required\r\n' }));
    expect(details(await send(port, {}, 'smtp://user:password@'))).toEqual([
      expect.stringMatching(/530 Authentication required/),
    ]);
  });
});

describe('a server that never answers', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['with a greeting', () => undefined],
    ['with a whole line', (socket) => void socket.write('2')],
    ['after the mail', scripted(TALKS)],
  ])('%s costs no file descriptor', async (_, handle) => {
    const { port, peers } = await rawServer(handle);
    const open = (): number => readdirSync('/proc/self/fd').length;
    await send(port, { withinMs: 400 });
    for (const peer of peers) peer.destroy();
    const before = open();
    await Promise.all(Array.from({ length: 10 }, () => send(port, { withinMs: 400 })));
    for (const peer of peers) peer.destroy();
    await expect.poll(open).toBeLessThan(before + 5);
  });
});
