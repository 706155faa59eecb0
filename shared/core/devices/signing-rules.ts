// Parses the core's rules for the subject of a signing request: `tls/config`, an XML document.
// Loaded at the first enrollment.

import { DOMParser } from '@xmldom/xmldom';

export interface NameEntry {
  name: string;
  value: string;
}

const MAX_ENTRIES = 20;

/** In order. Undefined for any other document, or one with a document type. */
export function readSigningRules(text: string): NameEntry[] | undefined {
  if (text.includes('<!DOCTYPE')) return undefined;
  try {
    const document = new DOMParser({ onError: refuse }).parseFromString(text, 'application/xml');
    const root = document.documentElement;
    if (root?.localName !== 'certificateConfig') return undefined;
    const entries = Array.from(root.getElementsByTagNameNS('*', 'nameEntry'), (entry) => ({
      name: entry.getAttribute('name') ?? '',
      value: entry.getAttribute('value') ?? '',
    }));
    const areFit = entries.length <= MAX_ENTRIES && entries.every(({ name, value }) => name !== '' && value !== '');
    return areFit ? entries : undefined;
  } catch {
    return undefined;
  }
}

/** A warning counts too: nothing is guessed. */
function refuse(_level: string, message: string): never {
  throw new Error(message);
}
