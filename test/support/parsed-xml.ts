// XML as a parser reads it that is not the product's own.

import { SaxesParser } from 'saxes';

export interface XmlElement {
  name: string;
  uri: string;
  attributes: [string, string][];
  elements: XmlElement[];
}

export interface ParsedXml {
  root: XmlElement;
  /** In their order, as are the others. */
  comments: string[];
  instructions: string[];
  /** What is neither markup nor blank, CDATA too. */
  texts: string[];
}

/** Throws at whatever is not well-formed; names are without their prefixes, namespace declarations are left out. */
export function parseXml(text: string): ParsedXml {
  const parser = new SaxesParser({ xmlns: true });
  const top: XmlElement = { name: '', uri: '', attributes: [], elements: [] };
  const open = [top];
  const parsed: Omit<ParsedXml, 'root'> = { comments: [], instructions: [], texts: [] };
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ local, uri, attributes }) => {
    const own = Object.values(attributes)
      .filter(({ prefix, name }) => prefix !== 'xmlns' && name !== 'xmlns')
      .map(({ name, value }): [string, string] => [name, value]);
    const element: XmlElement = { name: local, uri, attributes: own, elements: [] };
    open.at(-1)?.elements.push(element);
    open.push(element);
  });
  parser.on('closetag', () => void open.pop());
  parser.on('comment', (comment) => void parsed.comments.push(comment));
  parser.on('processinginstruction', ({ target, body }) => void parsed.instructions.push(`${target} ${body}`));
  const keep = (found: string): void => void (found.trim() !== '' && parsed.texts.push(found.trim()));
  parser.on('text', keep);
  parser.on('cdata', keep);
  parser.write(text).close();
  const [root] = top.elements;
  if (root === undefined) throw new Error('no root');
  return { root, ...parsed };
}

export function elementsAt(from: XmlElement, ...path: string[]): XmlElement[] {
  return path.reduce<XmlElement[]>(
    (found, name) => found.flatMap(({ elements }) => elements.filter((each) => each.name === name)),
    [from],
  );
}

export function attributesOf(element: XmlElement | undefined): Record<string, string> {
  return Object.fromEntries(element?.attributes ?? []);
}
