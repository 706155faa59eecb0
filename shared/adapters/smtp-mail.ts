// A message as a mail: headers, and the text in two forms.

import type { Message } from '../domain/alert-message.ts';
import type { Sender } from '../domain/email-address.ts';
import { oneLine } from '../domain/plain-text.ts';

/** The mail as it goes over the wire. The library encodes names. */
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

/** Plain ASCII goes out as it is, so that filters find it; the library would encode it for a mere quotation mark. */
function subjectOf(subject: string): string | { prepared: true; foldLines: true; value: string } {
  const plain = /^[\x20-\x7e]+$/.test(subject) && !subject.includes('=?');
  return plain ? { prepared: true, foldLines: true, value: subject } : subject;
}

/** The same for every attempt, so that mail clients and servers drop what they have already. */
function messageIdOf(id: string, address: string): string {
  const host = address.slice(address.lastIndexOf('@') + 1);
  return `<${id.replaceAll(/[^\w.+-]/g, '-')}@${host}>`;
}
