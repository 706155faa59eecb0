// Writes PKCS#12 files: a key with its certificates, encrypted, or certificates alone. Runs in Node
// and in workerd.

import * as asn1js from 'asn1js';
import * as pkijs from 'pkijs';

type Bytes = Uint8Array<ArrayBuffer>;

/** A certificate under the name that a person or a program finds it by. */
export interface NamedCertificate {
  friendlyName: string;
  /** DER. */
  certificate: Bytes;
}

export interface KeyBundle extends NamedCertificate {
  privateKeyPkcs8Der: Bytes;
  /** DER, the issuer first. */
  chain: readonly Bytes[];
  password: string;
  /** Of PBKDF2, for the key and for the certificates. */
  iterations?: number;
}

/**
 * Two derivations of this many take less than 100 ms. The usual password is public, so more would
 * protect nothing.
 */
const ITERATIONS = 100_000;
const MAC_ITERATIONS = 2048;
const FRIENDLY_NAME = '1.2.840.113549.1.9.20';
const LOCAL_KEY_ID = '1.2.840.113549.1.9.21';
const CERTIFICATE_BAG = '1.2.840.113549.1.12.10.1.3';
const SHROUDED_KEY_BAG = '1.2.840.113549.1.12.10.1.2';
/** Without this attribute a JVM takes a certificate without a key for no entry at all. */
const JAVA_TRUSTED_KEY_USAGE = '2.16.840.1.113894.746875.1.1';
const ANY_EXTENDED_KEY_USAGE = '2.5.29.37.0';

/**
 * A key, its certificate and the chain: AES-256 (PBES2, PBKDF2 with SHA-256), MAC with SHA-256.
 * Rejects when the key or a certificate is no DER.
 */
export async function keyBundle(bundle: KeyBundle): Promise<Bytes> {
  const { privateKeyPkcs8Der, certificate, chain, friendlyName, iterations = ITERATIONS } = bundle;
  const password = bytesOf(bundle.password);
  const encryption = {
    password,
    contentEncryptionAlgorithm: { name: 'AES-CBC', length: 256 },
    hmacHashAlgorithm: 'SHA-256',
    iterationCount: iterations,
  };
  const names = [nameAttribute(friendlyName), attribute(LOCAL_KEY_ID, octets(await keyId(certificate)))];
  const key = new pkijs.PKCS8ShroudedKeyBag({ parsedValue: pkijs.PrivateKeyInfo.fromBER(privateKeyPkcs8Der) });
  await key.makeInternalValues(encryption);
  // In one piece: node-forge, for one, reads no other form.
  key.encryptedData = octets(key.encryptedData.getValue());
  const keyBag = new pkijs.SafeBag({ bagId: SHROUDED_KEY_BAG, bagValue: key, bagAttributes: names });
  const certificates = [certificateBag(certificate, names), ...chain.map((each) => certificateBag(each))];
  return sealed(
    [
      { privacyMode: 0, value: new pkijs.SafeContents({ safeBags: [keyBag] }) },
      { privacyMode: 1, value: new pkijs.SafeContents({ safeBags: certificates }) },
    ],
    [{}, encryption],
    password,
    'SHA-256',
  );
}

/**
 * Certificates that are trusted, or handed out, without keys: not encrypted, MAC with SHA-1, which
 * old phones read.
 */
export async function certificateBundle(entries: readonly NamedCertificate[], password: string): Promise<Bytes> {
  const bags = entries.map(({ friendlyName, certificate }) =>
    certificateBag(certificate, [
      nameAttribute(friendlyName),
      attribute(JAVA_TRUSTED_KEY_USAGE, new asn1js.ObjectIdentifier({ value: ANY_EXTENDED_KEY_USAGE })),
    ]),
  );
  const contents = { privacyMode: 0, value: new pkijs.SafeContents({ safeBags: bags }) };
  return sealed([contents], [{}], bytesOf(password), 'SHA-1');
}

/**
 * True when a file of one of these two kinds is whole and belongs to the certificate: it holds it
 * in the clear, or the key of it. What is encrypted is not looked at; the MAC says that it is as it
 * was written.
 */
export async function bundleHolds(file: Bytes, certificate: Bytes, password: string): Promise<boolean> {
  try {
    const pfx = pkijs.PFX.fromBER(file);
    await pfx.parseInternalValues({ password: bytesOf(password), checkIntegrity: true });
    const id = await keyId(certificate);
    return clearBags(pfx).some((bag) => isOf(bag, certificate, id));
  } catch {
    return false;
  }
}

function clearBags(pfx: pkijs.PFX): pkijs.SafeBag[] {
  const contents = pfx.parsedValue?.authenticatedSafe?.safeContents ?? [];
  return contents
    .filter(({ contentType }) => contentType === pkijs.ContentInfo.DATA)
    .flatMap(({ content }) => pkijs.SafeContents.fromBER((content as asn1js.OctetString).getValue()).safeBags);
}

function isOf(bag: pkijs.SafeBag, certificate: Bytes, id: ArrayBuffer): boolean {
  if (bag.bagValue instanceof pkijs.CertBag) {
    const { parsedValue } = bag.bagValue;
    return parsedValue instanceof pkijs.Certificate && same(parsedValue.toSchema().toBER(), certificate);
  }
  const ids = (bag.bagAttributes ?? []).filter(({ type }) => type === LOCAL_KEY_ID).flatMap(({ values }) => values);
  return ids.some((value) => value instanceof asn1js.OctetString && same(value.getValue(), new Uint8Array(id)));
}

function same(one: ArrayBuffer, other: Bytes): boolean {
  const bytes = new Uint8Array(one);
  return bytes.length === other.length && bytes.every((byte, at) => byte === other[at]);
}

interface Contents {
  privacyMode: number;
  value: pkijs.SafeContents;
}

async function sealed(
  safeContents: readonly Contents[],
  protections: readonly object[],
  password: ArrayBuffer,
  hash: 'SHA-1' | 'SHA-256',
): Promise<Bytes> {
  const authenticatedSafe = new pkijs.AuthenticatedSafe({ parsedValue: { safeContents } });
  await authenticatedSafe.makeInternalValues({ safeContents: [...protections] });
  const pfx = new pkijs.PFX({ parsedValue: { integrityMode: 0, authenticatedSafe } });
  await pfx.makeInternalValues({
    password,
    iterations: MAC_ITERATIONS,
    pbkdf2HashAlgorithm: hash,
    hmacHashAlgorithm: hash,
  });
  return new Uint8Array(pfx.toSchema().toBER());
}

function certificateBag(certificate: Bytes, bagAttributes: pkijs.Attribute[] = []): pkijs.SafeBag {
  const bagValue = new pkijs.CertBag({ parsedValue: pkijs.Certificate.fromBER(certificate) });
  return new pkijs.SafeBag({
    bagId: CERTIFICATE_BAG,
    bagValue,
    ...(bagAttributes.length === 0 ? {} : { bagAttributes }),
  });
}

function nameAttribute(name: string): pkijs.Attribute {
  return attribute(FRIENDLY_NAME, new asn1js.BmpString({ value: name }));
}

function attribute(type: string, value: asn1js.AsnType): pkijs.Attribute {
  return new pkijs.Attribute({ type, values: [value] });
}

function octets(valueHex: ArrayBuffer): asn1js.OctetString {
  return new asn1js.OctetString({ valueHex });
}

/** As other programs do it: the SHA-1 of the certificate. */
async function keyId(certificate: Bytes): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-1', certificate);
}

function bytesOf(password: string): ArrayBuffer {
  return new TextEncoder().encode(password).buffer;
}
