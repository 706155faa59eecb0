// Sends email with SMTP: one mail to all recipients, each on its own connection. Needs Node for
// raw sockets.

import type { LookupFunction } from 'node:net';
import type { NodemailerError } from 'nodemailer';
import { isEmailAddress, readSender, type Sender } from '@holdfast/kit/addresses';
import { AppError } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';
import { failureWords, foreignWords, oneLine } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import { type Message, type Notifier, SEND_WITHIN_MS, type SendOutcome } from './port.ts';
import { callServer, GOODBYE_MS, type Handover, readSmtpUrl, type SmtpServer } from './smtp-session.ts';

const OWN_CODES = /^E(CONNECTION|SOCKET|TLS|PROTOCOL|ENVELOPE|MESSAGE|STREAM)$/;
const NO_PASSWORD_WITHOUT = 'and the password is not sent without it';

/** Why a mail server did not accept a mail, as one line without the password. */
export function failureOf(error: unknown, server: SmtpServer, quietMs: number): string {
  if (error instanceof AppError) return error.message;
  return `${server.place} ${predicate(error as NodemailerError, server, quietMs)}`;
}

/** True if a retry can't help: 5xx for the sender, recipient or mail. */
export function isForGood(error: unknown): boolean {
  const { command = '', responseCode = 0 } = error as NodemailerError;
  if (!['MAIL FROM', 'RCPT TO', 'DATA'].includes(command)) return false;
  return responseCode >= 500 && responseCode < 600 && responseCode !== 535;
}

/** The responses for single rejected recipients, by recipient. */
export function refusalsOf(errors: unknown, server: SmtpServer): Map<string, { detail: string; permanent: boolean }> {
  const each = Array.isArray(errors) ? errors : ((errors as NodemailerError).rejectedErrors ?? []);
  return new Map(
    (each as NodemailerError[]).map((error) => [
      error.recipient ?? '',
      { detail: failureOf(error, server, 0), permanent: isForGood(error) },
    ]),
  );
}

/** The response to an accepted mail. */
export function acceptanceWords(response: string, server: SmtpServer): string {
  return `${server.place} accepted it: ${foreignWords(response, server.secrets)}`;
}

function predicate(error: NodemailerError, server: SmtpServer, quietMs: number): string {
  const text = foreignWords(error.response ?? '', server.secrets);
  if (error.timeoutType !== undefined) return `${silence(error.timeoutType)} within ${quietMs / 1000} s${hint(server)}`;
  if (error.command === 'STARTTLS' && text !== '') return noStartTls(error.responseCode, text);
  if (error.code === 'EAUTH') return loginRefused(error.responseCode, text);
  if (text !== '') return refused(error, text);
  if (/closed unexpectedly|already (destroyed|half-closed)/.test(error.message))
    return 'closed the connection before it accepted the mail';
  if (/larger than allowed/.test(error.message)) return 'accepts no mail of this size';
  return failureWords(beneath(error), server.secrets);
}

function silence(kind: NonNullable<NodemailerError['timeoutType']>): string {
  if (kind === 'GREETING_TIMEOUT') return 'accepted the connection but sent no greeting';
  if (kind === 'UPGRADE_TIMEOUT') return 'did not finish the TLS handshake';
  return kind === 'CONNECT_TIMEOUT' ? 'did not answer' : 'stopped responding';
}

/** The common mistake with this port, where both sides wait for each other. */
function hint({ port, secure }: SmtpServer): string {
  return port === 465 && !secure ? ' (port 465 usually wants smtps://)' : '';
}

/** 454 is temporary, everything else permanent. */
function noStartTls(code: number | undefined, message: string): string {
  if (code === 454) return `can't use STARTTLS for now, ${NO_PASSWORD_WITHOUT}: ${message}`;
  return `offers no STARTTLS, ${NO_PASSWORD_WITHOUT}; use smtps:// (response: ${message})`;
}

function loginRefused(code: number | undefined, message: string): string {
  if (message === '') return 'requires a password, but SMTP_URL has a user without one';
  return code === 535 ? `rejected the user or password: ${message}` : `rejected the login: ${message}`;
}

function refused({ command }: NodemailerError, message: string): string {
  if (command === 'MAIL FROM') return `accepts no mail from this sender: ${message}`;
  if (command === 'RCPT TO') return `rejected the recipient: ${message}`;
  if (command === 'DATA') return `rejected the mail: ${message}`;
  return /^[245]\d\d/.test(message) ? `rejected the session: ${message}` : `does not speak SMTP: ${message}`;
}

/** Restores the code of the system or of OpenSSL, which the library replaces with its own. */
function beneath(error: NodemailerError): unknown {
  if (!OWN_CODES.test(error.code ?? '')) return error;
  const { message, originalCode } = error;
  return Object.assign(new Error(message), originalCode === undefined ? {} : { code: originalCode });
}

/**
 * Builds the mail as sent over the wire, with headers and the text in two forms. The library
 * encodes names.
 */
export async function composeMail(message: Message, from: Sender, recipients: readonly string[]): Promise<Buffer> {
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  const composer = new MailComposer({
    from,
    to: recipients.map((address) => ({ name: '', address })),
    messageId: messageIdOf(message.id, from.address),
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      Subject: subjectOf(oneLine(message.subject)),
    },
    text: message.text,
    html: message.html,
    textEncoding: 'quoted-printable',
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().build();
}

/**
 * Sends plain ASCII unchanged, so that filters match it; the library would encode it for a
 * quotation mark.
 */
function subjectOf(subject: string): string | { prepared: true; foldLines: true; value: string } {
  const plain = /^[\x20-\x7e]+$/.test(subject) && !subject.includes('=?');
  return plain ? { prepared: true, foldLines: true, value: subject } : subject;
}

/** The same for every attempt, so that mail clients and servers drop duplicates. */
function messageIdOf(id: string, address: string): string {
  const host = address.slice(address.lastIndexOf('@') + 1);
  return `<${id.replaceAll(/[^\w.+-]/g, '-')}@${host}>`;
}

export interface SmtpOptions {
  /**
   * `smtp://` (STARTTLS if offered) or `smtps://` (TLS from the start), with user and password as
   * %XX.
   */
  url: Secret;
  /** `address` or `Name <address>`. */
  from: string;
  /** Time limit of the handover of a mail, including the time that the server takes to check it. */
  withinMs?: number;
  /**
   * Time limit of everything before that: connecting, greeting, login, commands and the mail
   * itself.
   */
  commandsMs?: number;
  /**
   * Time limit of connecting, of the greeting with STARTTLS, and of any silence until the server
   * has the mail.
   */
  quietMs?: number;
  /** Resolves host names; default: the system's resolver. */
  lookup?: LookupFunction;
}

type Verdict = Omit<SendOutcome, 'recipient'>;

/** Sends email with the server at `url`. Throws for an invalid URL. */
export function smtpNotifier(options: SmtpOptions): Notifier {
  const { quietMs = 10_000, commandsMs = 30_000, withinMs = SEND_WITHIN_MS - GOODBYE_MS - 500, lookup } = options;
  const server = readSmtpUrl(options.url);
  const sender = readSender(options.from);
  const tooSlow = (ms: number) => (): Error =>
    new AppError('unavailable', `${server.place} is too slow: it did not accept the mail within ${ms / 1000} s`);

  async function handOver(message: Message, to: string[], over: AbortSignal, given: () => void): Promise<Handover> {
    if ('fault' in sender) throw new AppError('invalid', `ALERT_EMAIL_FROM is not a valid sender: ${sender.fault}`);
    const mail = await composeMail(message, sender, to);
    const session = await callServer(server, { quietMs, lookup, over });
    return session.handOver({ from: sender.address, to }, mail, given);
  }

  /** Hands over within both limits. */
  async function handOverInTime(message: Message, to: string[], over: AbortSignal): Promise<Handover> {
    const given = Promise.withResolvers<void>();
    const handover = handOver(message, to, over, given.resolve);
    const commands = withTimeout(commandsMs, tooSlow(commandsMs), Promise.race([given.promise, handover]));
    const both = commands.then(() => handover);
    return withTimeout(withinMs, tooSlow(withinMs), both);
  }

  async function verdicts(message: Message, to: string[]): Promise<(recipient: string) => Verdict> {
    const over = new AbortController();
    try {
      const handover = await handOverInTime(message, to, over.signal);
      await handover.goodbye();
      const refusals = refusalsOf(handover.refused, server);
      return judge(refusals, { accepted: true, detail: acceptanceWords(handover.response, server) });
    } catch (error) {
      // A notifier reports an outcome for every recipient, even after an error.
      return judge(refusalsOf(error, server), refusal(failureOf(error, server, quietMs), isForGood(error)));
    } finally {
      over.abort();
    }
  }

  return {
    send: async (message, recipients) => {
      const to = [...new Set(recipients.filter(isEmailAddress))];
      const verdictOf = to.length === 0 ? notAnAddress : await verdicts(message, to);
      return recipients.map((recipient) => ({
        recipient,
        ...(isEmailAddress(recipient) ? verdictOf(recipient) : notAnAddress()),
      }));
    },
  };
}

function judge(refusals: ReturnType<typeof refusalsOf>, others: Verdict): (recipient: string) => Verdict {
  return (recipient) => {
    const refused = refusals.get(recipient);
    return refused === undefined ? others : refusal(refused.detail, refused.permanent);
  };
}

function refusal(detail: string, permanent: boolean): Verdict {
  return { accepted: false, detail, ...(permanent ? { permanent } : {}) };
}

const notAnAddress = (): Verdict => refusal('Not an email address', true);
