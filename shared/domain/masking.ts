// Addresses of people as others may see them: enough to recognise one's own, not enough to write to it.

/** With a dot in the domain: `<20261121@mx>` is the id of a message. */
const EMAIL = /[\w.!#$%&'*+/?^`{|}~-]{1,64}@(?=[\p{L}\p{N}-]{1,63}\.[\p{L}\p{N}])[\p{L}\p{N}.-]{1,253}/gu;
const TELEPHONE = /(?<!\d)\+\d{7,15}(?!\d)/g;

/** At least this many digits of a telephone number stay hidden. */
const HIDDEN_DIGITS = 5;

/** `d***@example.org` of an e-mail address, `+1555***67` of a telephone number. */
export function maskRecipient(recipient: string): string {
  const at = recipient.lastIndexOf('@');
  if (at !== -1) return `${/^./u.exec(recipient)?.[0] ?? ''}***${recipient.slice(at)}`;
  const digits = recipient.replaceAll(/\D/g, '');
  const head = Math.min(4, Math.max(0, digits.length - 2 - HIDDEN_DIGITS));
  return `+${digits.slice(0, head)}***${digits.slice(-2)}`;
}

/** The text with the recipients masked, however a service spelled them, and everything else that is such an address. */
export function maskAddresses(text: string, recipients: readonly string[] = []): string {
  const known = recipients.reduce((masked, recipient) => {
    return masked.replaceAll(spellingsOf(recipient), () => maskRecipient(recipient));
  }, text);
  return known.replaceAll(EMAIL, maskRecipient).replaceAll(TELEPHONE, maskRecipient);
}

/** An e-mail address plain or encoded for a URL; a telephone number with +, 00 or neither, and with separators. */
function spellingsOf(recipient: string): RegExp {
  if (recipient.includes('@')) {
    const spellings = [recipient, encodeURIComponent(recipient)].map(literal);
    return new RegExp(spellings.join('|'), 'giu');
  }
  const digits = recipient.replaceAll(/\D/g, '').split('');
  return new RegExp(`(?<!\\d)(?:\\+|%2B|00)?${digits.join('[ ().-]{0,3}')}(?!\\d)`, 'giu');
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}
