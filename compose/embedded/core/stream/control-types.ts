// Events that are for the server alone: they are never handed on.

import type { CotEvent } from './parts.ts';

const PING = 't-x-c-t';
const PROTOCOL_REQUEST = 't-x-takp-q';
const CONTROL: ReadonlySet<string> = new Set([
  't-b',
  't-b-a',
  't-b-c',
  't-b-q',
  't-x-c-f',
  PING,
  't-x-c-t-r',
  PROTOCOL_REQUEST,
  't-x-c-m',
  't-x-c-i-e',
  't-x-c-i-d',
]);

export function isControl(type: string): boolean {
  return CONTROL.has(type);
}

export function isPing(type: string): boolean {
  return type === PING;
}

export function isProtocolRequest(type: string): boolean {
  return type === PROTOCOL_REQUEST;
}

/** Of the protobuf framing that a client asks for. */
export function requestedVersion(event: CotEvent): string | undefined {
  return event.detail('TakControl')?.child('TakRequest')?.attribute('version');
}
