// Stored events as one XML document, written as it is sent: it may be larger than what should be in memory.

import type { MissionEvents, StoredEvent } from '../store/mission-events.ts';
import { escapeXml } from '../stream/xml/escape.ts';

/** Read at once: one event may have megabytes. */
const BATCH = { events: 200, bytes: 2_000_000 };

/** `<events>` with every event of `wanted`; those that are gone meanwhile are left out. */
export function eventsDocument(
  events: Pick<MissionEvents, 'read'>,
  wanted: readonly { id: string; bytes: number }[],
): Response {
  const encoder = new TextEncoder();
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) =>
      controller.enqueue(encoder.encode("<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n<events>")),
    async pull(controller) {
      const ids = nextBatch(wanted, at);
      at += ids.length;
      const found = await events.read(ids);
      controller.enqueue(encoder.encode(found.map((event) => `${eventXml(event)}\n`).join('')));
      if (at < wanted.length) return;
      controller.enqueue(encoder.encode('</events>'));
      controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'application/xml' } });
}

function nextBatch(wanted: readonly { id: string; bytes: number }[], from: number): string[] {
  const ids: string[] = [];
  let bytes = 0;
  for (const { id, bytes: more } of wanted.slice(from, from + BATCH.events)) {
    if (ids.length > 0 && bytes + more > BATCH.bytes) break;
    ids.push(id);
    bytes += more;
  }
  return ids;
}

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
