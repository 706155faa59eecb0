// Names in client certificates: what stands in them besides the common name, and how they are
// written and read.

import type * as x509 from '@peculiar/x509';
import { AppError } from '@holdfast/kit/app-error';
import { formatDistinguishedName, type RelativeName } from '@holdfast/kit/distinguished-name';

/**
 * In the order in which they stand in the certificate, before the common name. Devices are told
 * these by `tls/config`.
 */
export const SUBJECT_ENTRIES = [
  { name: 'O', value: 'Holdfast' },
  { name: 'OU', value: 'CoT' },
] as const;

/** The upper bound of X.520, in characters. */
const MAX_COMMON_NAME_LENGTH = 64;

/** Throws an AppError `invalid` for a name that no certificate can have. */
export function checkCommonName(commonName: string): void {
  const shown = JSON.stringify(commonName.slice(0, 100));
  if (commonName === '') throw new AppError('invalid', 'The common name is empty: a certificate needs a name.');
  if (Array.from(commonName).length > MAX_COMMON_NAME_LENGTH)
    throw new AppError(
      'invalid',
      `The common name ${shown} is too long: a certificate has room for ${MAX_COMMON_NAME_LENGTH} characters.`,
    );
  if (!commonName.isWellFormed() || /\p{Cc}/u.test(commonName))
    throw new AppError('invalid', `The common name ${shown} has control characters or half characters: use others.`);
}

/** The subject as the certificate has it, the most general part first. */
export function clientSubject(commonName: string): x509.JsonNameParams {
  return nameParts([...SUBJECT_ENTRIES, { name: 'CN', value: commonName }]);
}

/** `CN=ada,OU=CoT,O=Holdfast`: the most specific part first, special characters escaped. */
export function clientSubjectText(commonName: string): string {
  const parts = [...SUBJECT_ENTRIES, { name: 'CN', value: commonName }];
  return formatDistinguishedName(parts.toReversed().map(({ name, value }) => [{ type: name, value }]));
}

/**
 * The name of any certificate as `clientSubjectText` writes it, and its common name (`''` when it
 * has none).
 */
export function readSubject(certificate: x509.X509Certificate): { subject: string; commonName: string } {
  const name = certificate.subjectName;
  const left = new Map<string, string[]>();
  /**
   * The values one by one: in the JSON a value that begins with `#` and one of an unknown type look
   * alike.
   */
  const next = (type: string): string => {
    const values = left.get(type) ?? name.getField(type);
    left.set(type, values.slice(1));
    return values[0] ?? '';
  };
  const parts: RelativeName[] = name
    .toJSON()
    .map((part) => Object.entries(part).flatMap(([type, values]) => values.map(() => ({ type, value: next(type) }))));
  return { subject: formatDistinguishedName(parts.toReversed()), commonName: name.getField('CN').at(-1) ?? '' };
}

/** Parts of a name, the most general one first. */
export function nameParts(parts: readonly { name: string; value: string }[]): x509.JsonNameParams {
  return parts.map(({ name, value }) => ({ [name]: [stringOf(value)] }));
}

/** As other CAs write it. A plain text would be read as an expression: `#0c`, `"a"`, `\,`. */
function stringOf(value: string): x509.JsonAttributeObject {
  return /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value) ? { printableString: value } : { utf8String: value };
}
