// Defines an event as the tables have it, and writes it as XML: the same event is the same bytes.

import { escapeXml } from './wire-text.ts';

export interface StoredEvent {
  uid: string;
  type: string | null;
  how: string | null;
  access: string | null;
  qos: string | null;
  opex: string | null;
  caveat: string | null;
  releaseableTo: string | null;
  time: Date | null;
  start: Date | null;
  stale: Date | null;
  lat: number | null;
  lon: number | null;
  hae: number | null;
  ce: number | null;
  le: number | null;
  /** The whole element. */
  detail: string | null;
}

export const XML_HEAD = "<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n";

/** `<event …><point …/><detail>…</detail></event>` */
export function eventXml(event: StoredEvent): string {
  const date = (value: Date | null): string => (value ?? new Date(0)).toISOString();
  const attributes: [string, string | null][] = [
    ['version', '2.0'],
    ['uid', event.uid],
    ['type', event.type ?? ''],
    ['time', date(event.time)],
    ['start', date(event.start)],
    ['stale', date(event.stale)],
    ['how', event.how ?? ''],
    ['access', event.access],
    ['qos', event.qos],
    ['opex', event.opex],
    ['caveat', event.caveat],
    ['releasableTo', event.releaseableTo],
  ];
  const written = attributes.flatMap(([name, value]) => (value === null ? [] : ` ${name}="${escapeXml(value)}"`));
  const point = {
    lat: event.lat ?? 0,
    lon: event.lon ?? 0,
    hae: event.hae ?? 0,
    ce: event.ce ?? 9_999_999,
    le: event.le ?? 9_999_999,
  };
  const where = Object.entries(point).map(([name, value]) => ` ${name}="${value}"`);
  return `<event${written.join('')}><point${where.join('')}/>${event.detail ?? '<detail/>'}</event>`;
}
