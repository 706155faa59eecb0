// E-mail by SMTP: one mail to all recipients, on a connection of its own. Node only: raw sockets.

import type { LookupFunction } from 'node:net';
import { AppError } from '../domain/app-error.ts';
import type { Message } from '../domain/alert-message.ts';
import { isEmailAddress, readSender } from '../domain/email-address.ts';
import type { Secret } from '../domain/secret.ts';
import { type Notifier, type SendOutcome, SEND_WITHIN_MS } from '../ports/notifier.ts';
import { composeMail } from './smtp-mail.ts';
import { readSmtpUrl } from './smtp-server.ts';
import { callServer, GOODBYE_MS, type Handover } from './smtp-session.ts';
import { acceptanceWords, failureOf, isForGood, refusalsOf } from './smtp-words.ts';
import { withinMs as endWithinMs } from './time-limit.ts';

export interface SmtpOptions {
  /** `smtp://` (STARTTLS when it is offered) or `smtps://` (TLS from the start), with user and password as %XX. */
  url: Secret;
  /** `address` or `Name <address>`. */
  from: string;
  /** The longest that handing over a mail may take, whatever the server does: it may look long at what it was given. */
  withinMs?: number;
  /** The longest that everything before that may take: connecting, greeting, login, commands and the mail itself. */
  commandsMs?: number;
  /** The longest that connecting, the greeting with STARTTLS, and any silence after them may take, until it has the mail. */
  quietMs?: number;
  /** How host names are found; the system's way if not given. */
  lookup?: LookupFunction;
}

type Verdict = Omit<SendOutcome, 'recipient'>;

/** E-mail by the server at `url`. Throws for a URL that is none. */
export function smtpNotifier(options: SmtpOptions): Notifier {
  const { quietMs = 10_000, commandsMs = 30_000, withinMs = SEND_WITHIN_MS - GOODBYE_MS - 500, lookup } = options;
  const server = readSmtpUrl(options.url);
  const sender = readSender(options.from);
  const tooSlow = (ms: number) => (): Error =>
    new AppError('unavailable', `${server.place} is too slow: it did not take the mail within ${ms / 1000} s`);

  async function handOver(message: Message, to: string[], over: AbortSignal, given: () => void): Promise<Handover> {
    if ('fault' in sender) throw new AppError('invalid', `ALERT_EMAIL_FROM is no sender: ${sender.fault}`);
    const mail = await composeMail(message, sender, to);
    const session = await callServer(server, { quietMs, lookup, over });
    return session.handOver({ from: sender.address, to }, mail, given);
  }

  /** Within both limits. */
  async function handOverInTime(message: Message, to: string[], over: AbortSignal): Promise<Handover> {
    const given = Promise.withResolvers<void>();
    const handover = handOver(message, to, over, given.resolve);
    const commands = endWithinMs(commandsMs, Promise.race([given.promise, handover]), tooSlow(commandsMs));
    const both = commands.then(() => handover);
    return endWithinMs(withinMs, both, tooSlow(withinMs));
  }

  async function verdicts(message: Message, to: string[]): Promise<(recipient: string) => Verdict> {
    const over = new AbortController();
    try {
      const handover = await handOverInTime(message, to, over.signal);
      await handover.goodbye();
      const refusals = refusalsOf(handover.refused, server);
      return judge(refusals, { accepted: true, detail: acceptanceWords(handover.response, server) });
    } catch (error) {
      // A notifier answers for every recipient, whatever happened.
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

const notAnAddress = (): Verdict => refusal('This is not an e-mail address', true);
