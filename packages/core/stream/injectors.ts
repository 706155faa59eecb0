// Adds elements to the details of events of certain uids, as administrators say.

import type { CotEvent } from '../model/stream.ts';
import { readXmlEvent, XmlEvent } from './wire/xml-event.ts';

export interface Injector {
  uid: string;
  /** An element without its brackets: `name a="b"`. */
  toInject: string;
}

const MAX_LENGTH = 1_000;
/** They say where an event goes and what it has passed. */
const OURS = new Set(['marti', '_flow-tags_']);
const SAMPLE =
  '<event version="2.0" uid="u" type="a" how="m-g"><point lat="0" lon="0" hae="0" ce="0" le="0"/><detail></detail></event>';

/** What is wrong with an element to inject, as the end of a sentence; undefined: nothing. */
export function injectionFault(toInject: string): string | undefined {
  if (toInject.length > MAX_LENGTH) return `has more than ${MAX_LENGTH} characters`;
  if (/[<>]/.test(toInject)) return 'has angle brackets: write the element without them';
  const name = /^[A-Za-z_][\w.-]*/.exec(toInject)?.[0] ?? '';
  if (name === '') return 'must begin with the name of an element';
  if (OURS.has(name)) return `must not be ${name}: the server writes that itself`;
  const sample = readXmlEvent(Buffer.from(SAMPLE));
  const event = sample === undefined ? undefined : withInside(sample, elementOf(toInject));
  return event?.detail(name) === undefined ? 'is no well-formed element' : undefined;
}

export class Injectors {
  readonly #byUid = new Map<string, string>();

  /** All of them, from now on. */
  replace(all: readonly Injector[]): void {
    this.#byUid.clear();
    for (const { uid, toInject } of all) this.#byUid.set(uid, (this.#byUid.get(uid) ?? '') + elementOf(toInject));
  }

  /** The event itself for a uid without any. */
  applied(event: CotEvent): CotEvent {
    if (this.#byUid.size === 0 || !(event instanceof XmlEvent)) return event;
    const inside = this.#byUid.get(event.uid);
    return inside === undefined ? event : (withInside(event, inside) ?? event);
  }
}

function elementOf(toInject: string): string {
  return `<${toInject}/>`;
}

/** Undefined when the event would be beyond the limits then. */
function withInside(event: XmlEvent, inside: string): XmlEvent | undefined {
  const { frame, detailStart, detailClose, detailEnd, rootClose } = event;
  const parts =
    detailClose >= 0
      ? [frame.subarray(0, detailClose), inside, frame.subarray(detailClose)]
      : detailStart >= 0
        ? [frame.subarray(0, detailEnd - 2), `>${inside}</detail>`, frame.subarray(detailEnd)]
        : [frame.subarray(0, rootClose), `<detail>${inside}</detail>`, frame.subarray(rootClose)];
  try {
    return readXmlEvent(Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))));
  } catch {
    // Rule `injectedOrNot`: an event that would be too large with it goes as it came.
    return undefined;
  }
}
