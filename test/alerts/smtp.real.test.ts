// Email by SMTP, against real mail servers good and bad.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type LookupFunction, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { SMTPServerAuthentication, SMTPServerOptions } from 'smtp-server';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import type { SendOutcome } from '../../shared/alerts/port.ts';
import { smtpNotifier, type SmtpOptions } from '../../shared/alerts/smtp.ts';
import { issue, type Issued } from '../support/certificates.ts';
import { closeMailServers, mailSink, parseMail, rawServer, scripted } from './fake-mail-sink.ts';
import { type Case, MESSAGE, notifierContract } from './notifier-contract.ts';

const FROM = 'holdfast@example.org';
const TO = ['duty@example.org', 'deputy@example.org'];
const PASSWORD = 'p@ss:wörd/1';
const LOGIN = `user:${encodeURIComponent(PASSWORD)}@`;
/** A host that is no loopback to the trust rule, though its servers are here. */
const UNAVAILABLE = 'mail.example.org';
const lookup: LookupFunction = (_, { all }, done) =>
  all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);

let selfSigned: Issued;
let trusted: Issued;
let otherName: Issued;
beforeAll(async () => {
  const root = await issue('mail root', undefined, { ca: true });
  setDefaultCACertificates([...getCACertificates('default'), root.pem]);
  selfSigned = await issue('nobody', undefined, { names: [UNAVAILABLE] });
  trusted = await issue('mail', root, { names: [UNAVAILABLE, '127.0.0.1'] });
  otherName = await issue('other', root, { names: ['other.example.org'] });
});
afterEach(closeMailServers);

const notifier = (url: string, options: Partial<SmtpOptions> = {}) =>
  smtpNotifier({ url: new Secret(url), from: FROM, quietMs: 400, withinMs: 1200, lookup, ...options });

const send = (url: string, options: Partial<SmtpOptions> = {}, to = TO): Promise<SendOutcome[]> =>
  notifier(url, options).send(MESSAGE, to);

const tls = (leaf: Issued): SMTPServerOptions => ({ key: leaf.key, cert: leaf.pem });

/** Knows one user. */
const knowing = (seen: SMTPServerAuthentication[] = []): SMTPServerOptions => ({
  authOptional: false,
  allowInsecureAuth: true,
  onAuth: (auth, _, done) => {
    seen.push(auth);
    if (auth.username === 'user' && auth.password === PASSWORD) return done(null, { user: 'user' });
    return done(new Error(`5.7.8 ${auth.username} with ${auth.password}?`));
  },
});

const codeError = (responseCode: number, text: string): Error => Object.assign(new Error(text), { responseCode });

const details = (outcomes: SendOutcome[]): string[] => [...new Set(outcomes.map(({ detail }) => detail))];

describe('a mail', () => {
  it('arrives once for all recipients, with its headers, its subject as it is and both bodies', async () => {
    const { port, taken } = await mailSink();
    const from = 'Hölzer, Duty <holdfast@example.org>';
    const outcomes = await send(`smtp://127.0.0.1:${port}`, { from });
    expect(outcomes).toEqual(
      TO.map((recipient) => ({
        recipient,
        accepted: true,
        detail: expect.stringMatching(/^127\.0\.0\.1:\d+ accepted it: 250 /),
      })),
    );
    expect(taken).toMatchObject([{ from: FROM, to: TO, encrypted: false, user: undefined }]);
    const { headers, parts } = parseMail(taken[0]?.raw ?? '');
    expect(Object.fromEntries(headers)).toMatchObject({
      subject: MESSAGE.subject,
      'message-id': '<alert-7f3a@example.org>',
      'auto-submitted': 'auto-generated',
      'x-auto-response-suppress': 'All',
      to: TO.join(', '),
      from: expect.stringMatching(/^=\?UTF-8\?[^<]+ <holdfast@example\.org>$/i),
      'content-type': expect.stringMatching(/^multipart\/alternative;/),
    });
    expect(Math.abs(Date.parse(headers.get('date') ?? '') - Date.now())).toBeLessThan(60_000);
    expect(parts).toEqual({ 'text/plain': MESSAGE.text, 'text/html': MESSAGE.html });
  });

  it('keeps long lines, other scripts, leading dots and a long subject', async () => {
    const { port, taken } = await mailSink();
    const text = `${'x'.repeat(1500)}\n.\nŽižkov 火 = é\n`;
    const subject = `Holdfast: ${'database and '.repeat(12)}disk are critical: "quotes" <b> = ?`;
    const message = { ...MESSAGE, subject, text, html: `<p>${text}</p>\n` };
    await notifier(`smtp://127.0.0.1:${port}`).send(message, TO);
    const { headers, parts } = parseMail(taken[0]?.raw ?? '');
    expect(headers.get('subject')).toBe(subject);
    expect(parts).toEqual({ 'text/plain': text, 'text/html': message.html });
  });

  it('lets nothing into its commands and headers that does not belong there', async () => {
    const { port, taken } = await mailSink();
    const evil = 'a@example.org>\r\nRCPT TO:<b@example.org';
    const recipients = [
      evil,
      'c@example.org\r\nBcc: d@example.org',
      'e@example.org, f@example.org',
      'good@example.org',
    ];
    const message = { ...MESSAGE, id: 'a\r\nX-Evil: 1', subject: 'one\r\nBcc: y@example.org\r\n\r\nbody' };
    const outcomes = await notifier(`smtp://127.0.0.1:${port}`).send(message, recipients);
    expect(outcomes.map(({ accepted }) => accepted)).toEqual([false, false, false, true]);
    expect(taken.map(({ to }) => to)).toEqual([['good@example.org']]);
    const { headers } = parseMail(taken[0]?.raw ?? '');
    expect([...headers.keys()].filter((name) => /bcc|evil/.test(name))).toEqual([]);
    expect(headers.get('subject')).toBe('one Bcc: y@example.org body');
    for (const from of ['x@a\r\nRSET', 'Duty\r\nBcc: x@example.org <holdfast@example.org>'])
      expect(details(await send(`smtp://127.0.0.1:${port}`, { from }))).toEqual([
        'ALERT_EMAIL_FROM is not a valid sender: it must be one line without control characters',
      ]);
    expect(taken).toHaveLength(1);
  });
});

describe('a recipient or a mail that the server refuses', () => {
  it('says so for that recipient alone', async () => {
    for (const hidePIPELINING of [true, false]) {
      const { port, taken } = await mailSink({
        hidePIPELINING,
        onRcptTo: ({ address }, _, done) =>
          done(address === TO[0] ? codeError(550, 'No such user\r\nhere') : undefined),
      });
      expect(await send(`smtp://127.0.0.1:${port}`)).toMatchObject([
        {
          accepted: false,
          detail: expect.stringMatching(/^127\.0\.0\.1:\d+ rejected the recipient: 550 .*No such user/),
        },
        { accepted: true },
      ]);
      expect(taken.map(({ to }) => to)).toEqual([[TO[1]]]);
    }
  });

  it('says why for each when none is taken, for now or for good', async () => {
    const { port, taken } = await mailSink({
      onRcptTo: ({ address }, _, done) =>
        done(address === TO[0] ? codeError(451, 'Try later') : codeError(550, 'Gone')),
    });
    expect((await send(`smtp://127.0.0.1:${port}`)).map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/rejected the recipient: 451 .*Try later$/),
      expect.stringMatching(/rejected the recipient: 550 .*Gone$/),
    ]);
    expect(taken).toEqual([]);
  });

  it('gives all of them the answer to the sender or to the mail', async () => {
    const sender = await mailSink({ onMailFrom: (_, __, done) => done(codeError(553, 'Not yours')) });
    const mail = await mailSink({
      onData: (stream, _, done) => void stream.resume().on('end', () => done(codeError(451, 'Greylisted'))),
    });
    expect(details(await send(`smtp://127.0.0.1:${sender.port}`))).toEqual([
      expect.stringMatching(/accepts no mail from this sender: 553 .*Not yours$/),
    ]);
    expect(details(await send(`smtp://127.0.0.1:${mail.port}`))).toEqual([
      expect.stringMatching(/rejected the mail: 451 .*Greylisted$/),
    ]);
  });
});

describe('encryption', () => {
  it('is taken when it is offered, whatever the certificate, if there is no password to protect', async () => {
    const { port, taken } = await mailSink(tls(selfSigned));
    for (const host of ['127.0.0.1', UNAVAILABLE])
      expect(await send(`smtp://${host}:${port}`)).toMatchObject([{ accepted: true }, { accepted: true }]);
    expect(taken.map(({ encrypted }) => encrypted)).toEqual([true, true]);
  });

  it('is from the start for smtps://, and verified unless the server is on this machine', async () => {
    const bad = await mailSink({ ...tls(selfSigned), secure: true });
    const good = await mailSink({ ...tls(trusted), secure: true });
    expect(await send(`smtps://127.0.0.1:${bad.port}`)).toMatchObject([{ accepted: true }, { accepted: true }]);
    expect(await send(`smtps://${UNAVAILABLE}:${good.port}`)).toMatchObject([{ accepted: true }, { accepted: true }]);
    expect(details(await send(`smtps://${UNAVAILABLE}:${bad.port}`))).toEqual([
      `${UNAVAILABLE}:${bad.port} presents a certificate that is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)`,
    ]);
    expect([...bad.taken, ...good.taken].map(({ encrypted }) => encrypted)).toEqual([true, true]);
  });

  it('must be there and be verified before a password leaves this machine', async () => {
    const seen: SMTPServerAuthentication[] = [];
    const none = await mailSink(knowing(seen));
    const forged = await mailSink({ ...tls(selfSigned), ...knowing(seen) });
    const other = await mailSink({ ...tls(otherName), ...knowing(seen) });
    expect(details(await send(`smtp://${LOGIN}${UNAVAILABLE}:${none.port}`))).toEqual([
      expect.stringMatching(
        /:\d+ offers no STARTTLS, and the password is not sent without it; use smtps:\/\/ \(response: 50/,
      ),
    ]);
    expect(details(await send(`smtp://${LOGIN}${UNAVAILABLE}:${forged.port}`))).toEqual([
      expect.stringMatching(/not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/),
    ]);
    expect(details(await send(`smtp://${LOGIN}${UNAVAILABLE}:${other.port}`))).toEqual([
      expect.stringMatching(/not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)$/),
    ]);
    expect(seen).toEqual([]);
    expect([...none.taken, ...forged.taken, ...other.taken]).toEqual([]);
  });

  it('tells which scheme is wrong', async () => {
    const plain = await mailSink();
    expect(details(await send(`smtps://127.0.0.1:${plain.port}`))).toEqual([
      `127.0.0.1:${plain.port} does not speak TLS`,
    ]);
    const secure = await mailSink({ ...tls(trusted), secure: true });
    expect(details(await send(`smtp://127.0.0.1:${secure.port}`))).toEqual([
      `127.0.0.1:${secure.port} accepted the connection but sent no greeting within 0.4 s`,
    ]);
  });
});

describe('a login', () => {
  it('has the user and the password of the URL, over verified TLS or on this machine', async () => {
    for (const [host, options] of [
      [UNAVAILABLE, tls(trusted)],
      ['127.0.0.1', {}],
      ['localhost', { authMethods: ['LOGIN'] }],
    ] as const) {
      const { port, taken } = await mailSink({ ...options, ...knowing() } as SMTPServerOptions);
      expect(await send(`smtp://${LOGIN}${host}:${port}`)).toMatchObject([{ accepted: true }, { accepted: true }]);
      expect(taken).toMatchObject([{ user: 'user', encrypted: host === UNAVAILABLE }]);
    }
  });

  it('that is refused says so without the password, which the server repeats', async () => {
    const { port, taken } = await mailSink(knowing());
    const wrong = 'wr%C3%B6ng-s3cret';
    const [detail = '', ...more] = details(await send(`smtp://user:${wrong}@127.0.0.1:${port}`));
    expect(more).toEqual([]);
    expect(detail).toMatch(/^127\.0\.0\.1:\d+ rejected the user or password: 535 .*user with \*\*\*\?$/);
    expect(details(await send(`smtp://user@127.0.0.1:${port}`))[0]).toMatch(/SMTP_URL has a user without one$/);
    expect(taken).toEqual([]);
  });

  it('hides the password in every form in which it was sent', async () => {
    const echo = await rawServer((socket) => {
      socket.write('220 here\r\n');
      socket.on('data', (data) => {
        const text = data.toString();
        socket.write(text.startsWith('EHLO') ? '250-here\r\n250 AUTH PLAIN\r\n' : `454-4.7.0 ${text}454 later\r\n`);
      });
    });
    const [detail = ''] = details(await send(`smtp://${LOGIN}127.0.0.1:${echo.port}`));
    expect(detail).toMatch(/rejected the login: 454-4\.7\.0 AUTH PLAIN \*\*\* 454 later$/);
  });
});

describe('a server that does not do its work', () => {
  const EHLO = '250-here\r\n250 SIZE\r\n';
  const TALKS = { EHLO, 'MAIL FROM': '250 ok\r\n', 'RCPT TO': '250 ok\r\n', DATA: '354 go on\r\n' };
  const drip = (text: string) => (socket: Socket) => {
    let at = 0;
    const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ''), 50);
    socket.on('close', () => clearInterval(timer)).resume();
  };

  it.each([
    ['says nothing', () => {}, /accepted the connection but sent no greeting within 0\.4 s$/],
    ['drips its greeting', drip('220-slow\r\n'), /sent no greeting within 0\.4 s$/],
    ['is no mail server', scripted({ greeting: 'SSH-2.0-OpenSSH_9.9\r\n' }), /does not speak SMTP: SSH-2\.0/],
    ['does not want us', scripted({ greeting: '554 go away\r\n' }), /rejected the session: 554 go away$/],
    ['hangs after EHLO', scripted({}), /stopped responding within 0\.4 s$/],
    ['hangs after RCPT', scripted({ ...TALKS, DATA: '' }), /stopped responding within 0\.4 s$/],
    [
      'closes in the middle',
      (socket) => scripted({ EHLO })(socket.once('data', () => setTimeout(() => socket.end(), 20))),
      /closed the connection before it accepted the mail$/,
    ],
    ['closes at once', (socket) => socket.end(), /closed the connection before it accepted the mail$/],
    ['resets', (socket) => socket.resetAndDestroy(), /closed the connection( before it had taken the mail)?$/],
    [
      'says 421 to the sender',
      scripted({ ...TALKS, 'MAIL FROM': '421 shutting down\r\n' }),
      /this sender: 421 shutting down$/,
    ],
    ['talks without end', scripted({ greeting: `220-${'x'.repeat(70_000)}\r\n` }), /exceeds maximum allowed size$/],
  ] as [string, (socket: Socket) => void, RegExp][])('%s', async (_, handle, words) => {
    const { port, peers } = await rawServer(handle);
    const outcomes = await send(`smtp://127.0.0.1:${port}`);
    expect(outcomes).toEqual(
      TO.map((recipient) => ({ recipient, accepted: false, detail: expect.stringMatching(words) })),
    );
    await expect.poll(() => peers.every((peer) => peer.destroyed || peer.readableEnded)).toBe(true);
  });

  it('refuses the connection, or has no name', async () => {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    await once(server.close(), 'close');
    expect(details(await send(`smtp://127.0.0.1:${port}`))).toEqual([`127.0.0.1:${port} refused the connection`]);
    const unknown: LookupFunction = (host, _, done) =>
      done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }), '', 4);
    expect(details(await send('smtp://nowhere.invalid', { lookup: unknown }))).toEqual([
      'nowhere.invalid:25 has a host name that is not known',
    ]);
    expect(details(await send('smtp://nowhere.invalid', { lookup: () => {} }))).toEqual([
      'nowhere.invalid:25 did not answer within 0.4 s',
    ]);
  });

  it.each(['plain', 'encrypted'])('drips for ever, %s: the send ends, and nothing is sent after that', async (kind) => {
    const sink = await mailSink(kind === 'plain' ? {} : tls(trusted));
    let heard = 0;
    let cut: number | undefined;
    const proxy = await rawServer((client) => {
      const queue: Buffer[] = [];
      const server = connect(sink.port, '127.0.0.1').on('error', () => {});
      server.on('data', (data) => queue.push(...[...data].map((byte) => Buffer.of(byte))));
      const timer = setInterval(() => queue.length > 0 && client.write(queue.shift() ?? ''), 8);
      client.on('data', (data) => {
        heard += data.length;
        server.write(data);
      });
      client.on('close', () => {
        cut = performance.now();
        clearInterval(timer);
        server.destroy();
      });
    });
    const outcomes = await send(`smtp://127.0.0.1:${proxy.port}`, { withinMs: 700, quietMs: 5000 });
    const ended = performance.now();
    const heardUntilThen = heard;
    expect(details(outcomes)).toEqual([`127.0.0.1:${proxy.port} is too slow: it did not accept the mail within 0.7 s`]);
    await expect.poll(() => cut).toBeDefined();
    expect((cut ?? 0) - ended).toBeLessThan(200);
    await new Promise((done) => setTimeout(done, 300));
    expect(heard).toBe(heardUntilThen);
    expect(sink.taken).toEqual([]);
  });
});

describe('a server that takes the mail and never says so', () => {
  it.each(['smtp', 'smtps'])('%s: the send ends, and the encrypted connection with it', async (scheme) => {
    let closed = 0;
    const { port } = await mailSink({
      ...tls(trusted),
      secure: scheme === 'smtps',
      onData: (stream) => void stream.resume(),
      onClose: () => closed++,
    });
    expect(details(await send(`${scheme}://${UNAVAILABLE}:${port}`, { withinMs: 500, quietMs: 5000 }))).toEqual([
      `${UNAVAILABLE}:${port} is too slow: it did not accept the mail within 0.5 s`,
    ]);
    await expect.poll(() => closed).toBe(1);
  });
});

describe('after the mail is taken', () => {
  it('a server that says no goodbye does not make the mail fail', async () => {
    const server = await rawServer(
      scripted({
        EHLO: '250 here\r\n',
        'MAIL FROM': '250 ok\r\n',
        'RCPT TO': '250 ok\r\n',
        DATA: '354 go on\r\n',
        '.': '250 2.0.0 queued as 4711\r\n',
      }),
    );
    const outcomes = await send(`smtp://127.0.0.1:${server.port}`);
    expect(outcomes.map(({ accepted }) => accepted)).toEqual([true, true]);
    expect(details(outcomes)).toEqual([`127.0.0.1:${server.port} accepted it: 250 2.0.0 queued as 4711`]);
    await expect.poll(() => server.peers.every((peer) => peer.destroyed)).toBe(true);
  });
});

describe('every send', () => {
  const at = async (port: Promise<{ port: number }>): Promise<Case> => ({
    notifier: notifier(`smtp://${LOGIN}127.0.0.1:${(await port).port}`),
    recipients: [...TO, 'no address', TO[0] ?? ''],
    secrets: [PASSWORD, encodeURIComponent(PASSWORD), Buffer.from(PASSWORD).toString('base64')],
  });
  notifierContract(
    {
      'all is well': () => at(mailSink(knowing())),
      'the login is refused': () =>
        at(mailSink({ ...knowing(), onAuth: (auth, _, done) => done(new Error(String(auth.password))) })),
      'the server says nothing': () => at(rawServer(() => {})),
      'the server talks nonsense': () => at(rawServer((socket) => socket.end('\u0000\u0007x\r\ny\r\n'))),
      'the server is gone': () => at(Promise.resolve({ port: 1 })),
    },
    2500,
  );
});
