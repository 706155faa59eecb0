// Parses XML that a client sent, whole and without a document type.

import { DOMParser, type Document } from '@xmldom/xmldom';

const DOCUMENT_TYPE = /<!(DOCTYPE|ENTITY)/i;

/** Throws an Error that says what is wrong, in words. */
export function parsedXml(xml: string): Document {
  if (DOCUMENT_TYPE.test(xml)) throw new Error('it has a DOCTYPE');
  const parser = new DOMParser({ onError: (_, message) => refuse(message) });
  return parser.parseFromString(xml, 'text/xml');
}

function refuse(message: string): never {
  throw new Error(message);
}
