// Encodes LDAP results (RFC 4511, section 4.1.9) and everything else that is sent.

import { BerWriter } from 'ldapts';
import { OCTETS, SET } from './ber.ts';

export const RESULT = {
  success: 0,
  operationsError: 1,
  protocolError: 2,
  timeLimitExceeded: 3,
  sizeLimitExceeded: 4,
  compareFalse: 5,
  compareTrue: 6,
  authMethodNotSupported: 7,
  unavailableCriticalExtension: 12,
  noSuchAttribute: 16,
  noSuchObject: 32,
  invalidDNSyntax: 34,
  invalidCredentials: 49,
  insufficientAccessRights: 50,
  busy: 51,
  unavailable: 52,
  unwillingToPerform: 53,
} as const;

export interface Control {
  oid: string;
  critical: boolean;
  value: Buffer | undefined;
}

export interface Result {
  code: number;
  /** For people who debug a client; says nothing about who or what exists. */
  text?: string;
  controls?: Control[];
  /** Value of an extended answer. */
  value?: string;
  /** Name of an extended answer. */
  name?: string;
}

export interface SentAttribute {
  name: string;
  values: readonly string[];
}

const NOTICE_OF_DISCONNECTION = '1.3.6.1.4.1.1466.20036';
const EXTENDED_ANSWER = 0x78;

export function writeResult(id: number, tag: number, result: Result): Buffer {
  const writer = new BerWriter();
  writer.startSequence();
  writer.writeInt(id);
  writer.startSequence(tag);
  writer.writeEnumeration(result.code);
  writer.writeString('');
  writer.writeString(result.text ?? '');
  if (result.name !== undefined) writer.writeString(result.name, 0x8a);
  if (result.value !== undefined) writer.writeString(result.value, 0x8b);
  writer.endSequence();
  if (result.controls !== undefined) writeControls(writer, result.controls);
  writer.endSequence();
  return writer.buffer;
}

function writeControls(writer: BerWriter, controls: readonly Control[]): void {
  writer.startSequence(0xa0);
  for (const { oid, critical, value } of controls) {
    writer.startSequence();
    writer.writeString(oid);
    if (critical) writer.writeBoolean(true);
    if (value !== undefined) writer.writeBuffer(value, OCTETS);
    writer.endSequence();
  }
  writer.endSequence();
}

/** Tells the client why its connection ends (RFC 4511, section 4.4.1). */
export function writeNoticeOfDisconnection(code: number, text: string): Buffer {
  return writeResult(0, EXTENDED_ANSWER, { code, text, name: NOTICE_OF_DISCONNECTION });
}

/**
 * One entry of a search. The writer gets room for everything at once: a sequence of more than 64
 * KiB that ends exactly where its buffer ends would lose a byte.
 */
export function writeEntry(id: number, dn: string, attributes: readonly SentAttribute[], typesOnly: boolean): Buffer {
  const writer = new BerWriter({ size: roomFor(dn, attributes) });
  writer.startSequence();
  writer.writeInt(id);
  writer.startSequence(0x64);
  writer.writeString(dn);
  writer.startSequence();
  for (const { name, values } of attributes) {
    writer.startSequence();
    writer.writeString(name);
    writer.startSequence(SET);
    if (!typesOnly) for (const value of values) writer.writeString(value);
    writer.endSequence();
    writer.endSequence();
  }
  writer.endSequence();
  writer.endSequence();
  writer.endSequence();
  return writer.buffer;
}

const HEAD_BYTES = 6;

function roomFor(dn: string, attributes: readonly SentAttribute[]): number {
  let bytes = 64 + Buffer.byteLength(dn);
  for (const { name, values } of attributes) {
    bytes += 3 * HEAD_BYTES + Buffer.byteLength(name);
    for (const value of values) bytes += HEAD_BYTES + Buffer.byteLength(value);
  }
  return bytes;
}
