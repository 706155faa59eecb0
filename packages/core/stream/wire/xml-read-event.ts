// From the bytes of one frame to a CoT event.

import type { CotEvent } from '../../model/stream.ts';
import { isNamed } from './xml-element.ts';
import { XmlEvent } from './xml-event.ts';
import { scan } from './xml-scan.ts';

/** Of a uid and of a type, in characters. */
const MOST_NAME_LENGTH = 1024;

/**
 * Undefined for well-formed XML that is no CoT event: its root is not `event`, uid or type are missing, empty or too long, there
 * is no point, or its numbers are none or lie outside of the world. Without `hae`, `ce` or `le` these are unknown (9999999).
 * Throws a StreamFault for what is not well-formed. The event lies in the bytes of the frame.
 */
export function readEvent(frame: Buffer): CotEvent | undefined {
  return readXmlEvent(frame);
}

export function readXmlEvent(frame: Buffer): XmlEvent | undefined {
  const outline = scan(frame);
  if (outline.pointFrom < 0 || !isNamed(frame, 1, 'event')) return undefined;
  const event = new XmlEvent(frame, outline);
  return isName(event.uid) && isName(event.type) && isPlace(event.point) ? event : undefined;
}

function isName(text: string): boolean {
  return text.length > 0 && text.length <= MOST_NAME_LENGTH;
}

/** False for NaN. */
function isPlace({ lat, lon, hae, ce, le }: CotEvent['point']): boolean {
  const isOnEarth = lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180;
  return isOnEarth && Number.isFinite(hae) && Number.isFinite(ce) && Number.isFinite(le);
}
