// Why a mail server did not take a mail, in words for people.

import type { NodemailerError } from 'nodemailer';
import { AppError } from '../domain/app-error.ts';
import { failureWords, foreignWords } from './foreign-words.ts';
import type { SmtpServer } from './smtp-server.ts';

const OWN_CODES = /^E(CONNECTION|SOCKET|TLS|PROTOCOL|ENVELOPE|MESSAGE|STREAM)$/;
const NO_PASSWORD_WITHOUT = 'and a password is not sent without it';

/** What went wrong, as one line without the password. */
export function failureOf(error: unknown, server: SmtpServer, quietMs: number): string {
  if (error instanceof AppError) return error.message;
  return `${server.place} ${predicate(error as NodemailerError, server, quietMs)}`;
}

/** True when the server will say the same however often it is asked: 5xx to sender, recipient or mail. */
export function isForGood(error: unknown): boolean {
  const { command = '', responseCode = 0 } = error as NodemailerError;
  if (!['MAIL FROM', 'RCPT TO', 'DATA'].includes(command)) return false;
  return responseCode >= 500 && responseCode < 600 && responseCode !== 535;
}

/** What the server said about single recipients that it refused, by recipient. */
export function refusalsOf(errors: unknown, server: SmtpServer): Map<string, { detail: string; permanent: boolean }> {
  const each = Array.isArray(errors) ? errors : ((errors as NodemailerError).rejectedErrors ?? []);
  return new Map(
    (each as NodemailerError[]).map((error) => [
      error.recipient ?? '',
      { detail: failureOf(error, server, 0), permanent: isForGood(error) },
    ]),
  );
}

/** What it said when it took the mail. */
export function acceptanceWords(response: string, server: SmtpServer): string {
  return `${server.place} accepted it: ${foreignWords(response, server.secrets)}`;
}

function predicate(error: NodemailerError, server: SmtpServer, quietMs: number): string {
  const said = foreignWords(error.response ?? '', server.secrets);
  if (error.timeoutType !== undefined) return `${silence(error.timeoutType)} within ${quietMs / 1000} s${hint(server)}`;
  if (error.command === 'STARTTLS' && said !== '') return noStartTls(error.responseCode, said);
  if (error.code === 'EAUTH') return loginRefused(error.responseCode, said);
  if (said !== '') return refused(error, said);
  if (/closed unexpectedly|already (destroyed|half-closed)/.test(error.message))
    return 'closed the connection before it had taken the mail';
  if (/larger than allowed/.test(error.message)) return 'takes no mail of this size';
  return failureWords(beneath(error), server.secrets);
}

function silence(kind: NonNullable<NodemailerError['timeoutType']>): string {
  if (kind === 'GREETING_TIMEOUT') return 'accepted the connection and gave no greeting';
  if (kind === 'UPGRADE_TIMEOUT') return 'did not finish the TLS handshake';
  return kind === 'CONNECT_TIMEOUT' ? 'did not answer' : 'fell silent and said nothing';
}

/** The usual mistake about this port, on which both sides wait for each other. */
function hint({ port, secure }: SmtpServer): string {
  return port === 465 && !secure ? ' (port 465 usually wants smtps://)' : '';
}

/** 454 is for now, everything else for good. */
function noStartTls(code: number | undefined, said: string): string {
  if (code === 454) return `cannot do STARTTLS for now, ${NO_PASSWORD_WITHOUT}: ${said}`;
  return `offers no STARTTLS, ${NO_PASSWORD_WITHOUT}; use smtps:// (it said: ${said})`;
}

function loginRefused(code: number | undefined, said: string): string {
  if (said === '') return 'wants a password, and SMTP_URL names a user without one';
  return code === 535 ? `does not know the user or password: ${said}` : `refused the login: ${said}`;
}

function refused({ command }: NodemailerError, said: string): string {
  if (command === 'MAIL FROM') return `does not take mail from this sender: ${said}`;
  if (command === 'RCPT TO') return `refused the recipient: ${said}`;
  if (command === 'DATA') return `refused the mail: ${said}`;
  return /^[245]\d\d/.test(said) ? `does not want to talk: ${said}` : `does not speak SMTP: ${said}`;
}

/** The library puts a code of its own in the place of the system's or of OpenSSL's, if there was one. */
function beneath(error: NodemailerError): unknown {
  if (!OWN_CODES.test(error.code ?? '')) return error;
  const { message, originalCode } = error;
  return Object.assign(new Error(message), originalCode === undefined ? {} : { code: originalCode });
}
