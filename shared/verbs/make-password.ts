// A password to be read aloud or typed from a screen: no characters that look alike, in groups of five.

/** 2^5 of them, so that each is as likely as any other. */
const CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const GROUPS = 4;
const PER_GROUP = 5;

/** A hundred random bits. */
export function makePassword(): string {
  const random = crypto.getRandomValues(new Uint8Array(GROUPS * PER_GROUP));
  const text = Array.from(random, (byte) => CHARACTERS[byte % CHARACTERS.length] ?? '').join('');
  return (text.match(/.{5}/g) ?? []).join('-');
}
