// Edits an XML configuration file in place. Keeps comments, order, line ends and everything outside
// its root. A file without changes keeps every byte. Refuses a DOCTYPE.

import { type Document, DOMParser, type Element, type Node, XMLSerializer } from '@xmldom/xmldom';
import { messageOf } from '@holdfast/kit/app-error';

export const CONFIGURATION_NAMESPACE = 'http://bbn.com/marti/xml/config';
const BYTE_ORDER_MARK = '\uFEFF';
const INDENT = '    ';

/** A problem of the file, with its line. */
export class ConfigurationFault extends Error {}

export interface ConfigurationDocument {
  root: Element;
  /** Descriptions of the replaced values, without secrets. */
  messages: string[];
  changed: boolean;
  /** The complete file; exactly the original text if nothing changed. */
  text: () => string;
}

/** Throws a ConfigurationFault. */
export function readConfiguration(text: string, rootName: string): ConfigurationDocument {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  const lines = text.slice(mark.length).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const root = rootOf(parse(lines), rootName);
  const prolog = lines.slice(0, startOf(root, lines));
  const [epilog = ''] = /(?:\s|<!--(?:(?!-->)[^])*-->|<\?(?:(?!\?>)[^])*\?>)*$/.exec(lines.slice(prolog.length)) ?? [];
  const lineEnd = /\r\n/.test(text) && !/[^\r]\n/.test(text) ? '\r\n' : '\n';
  const document: ConfigurationDocument = {
    root,
    messages: [],
    changed: false,
    text() {
      if (!document.changed) return text;
      const whole = `${prolog}${new XMLSerializer().serializeToString(root)}${epilog}`;
      return mark + (whole.endsWith('\n') ? whole : `${whole}\n`).replaceAll('\n', lineEnd);
    },
  };
  return document;
}

/** Treats every parser warning as an error. */
function parse(text: string): Document {
  if (text.includes('<!DOCTYPE')) throw new ConfigurationFault('a document type (DOCTYPE) is not allowed');
  let fault: ConfigurationFault | undefined;
  const onError = (_level: string, message: string, context: { locator?: { lineNumber?: number } }): never => {
    fault ??= new ConfigurationFault(`line ${context.locator?.lineNumber ?? 1}: ${message.split('\n')[0]}`);
    throw fault;
  };
  try {
    return new DOMParser({ onError }).parseFromString(text, 'text/xml');
  } catch (error) {
    throw fault ?? new ConfigurationFault(messageOf(error).split('\n')[0] ?? 'it is not XML');
  }
}

function rootOf(document: Document, name: string): Element {
  const root = document.documentElement;
  if (root?.localName === name && root.namespaceURI === CONFIGURATION_NAMESPACE) return root;
  throw new ConfigurationFault(`its root must be ${name} of the namespace ${CONFIGURATION_NAMESPACE}`);
}

/** Offset of the root's tag, by the position that the parser noted. */
function startOf(root: Element, text: string): number {
  const before = text.split('\n').slice(0, (root.lineNumber ?? 1) - 1);
  const start = before.reduce((length, line) => length + line.length + 1, 0) + (root.columnNumber ?? 1) - 1;
  if (text.startsWith(`<${root.tagName}`, start)) return start;
  throw new ConfigurationFault(`line ${root.lineNumber ?? 1}: its root was not found`);
}

export function childrenOf(parent: Element, name: string): Element[] {
  return Array.from(parent.childNodes).filter(
    (node): node is Element =>
      node.nodeType === node.ELEMENT_NODE &&
      (node as Element).localName === name &&
      node.namespaceURI === parent.namespaceURI,
  );
}

/** The first child of that name. If there is none, adds one at the end or before `before`. */
export function ensureChild(
  document: ConfigurationDocument,
  parent: Element,
  name: string,
  before: Node | null = null,
): Element {
  return childrenOf(parent, name)[0] ?? insertChild(document, parent, name, before);
}

export function insertChild(
  document: ConfigurationDocument,
  parent: Element,
  name: string,
  before: Node | null = null,
): Element {
  const owner = document.root.ownerDocument;
  if (owner === null) throw new ConfigurationFault('its root belongs to no document');
  const element = owner.createElementNS(
    CONFIGURATION_NAMESPACE,
    parent.prefix === null ? name : `${parent.prefix}:${name}`,
  );
  place(document, parent, element, before);
  return element;
}

/** Inserts an element on its own line. */
export function place(document: ConfigurationDocument, parent: Element, element: Element, before: Node | null): void {
  const owner = document.root.ownerDocument;
  const indent = INDENT.repeat(depthOf(parent) + 1);
  const last = parent.lastChild;
  const at = before ?? (last !== null && isBlank(last) ? last : null);
  const isBefore = before !== null && before.previousSibling !== null && isBlank(before.previousSibling);
  document.changed = true;
  if (owner === null) throw new ConfigurationFault('its root belongs to no document');
  if (isBefore) {
    parent.insertBefore(element, at);
    parent.insertBefore(owner.createTextNode(`\n${indent}`), at);
    return;
  }
  parent.insertBefore(owner.createTextNode(`\n${indent}`), at);
  parent.insertBefore(element, at);
  if (at === null || before !== null)
    parent.insertBefore(owner.createTextNode(`\n${before === null ? indent.slice(INDENT.length) : indent}`), at);
}

function depthOf(element: Element): number {
  const parent = element.parentNode;
  return parent === null || parent.nodeType !== parent.ELEMENT_NODE ? 0 : depthOf(parent as Element) + 1;
}

/** Removes an element and the whitespace before it. */
export function removeChild(document: ConfigurationDocument, element: Element): void {
  const before = element.previousSibling;
  if (before !== null && isBlank(before)) before.parentNode?.removeChild(before);
  element.parentNode?.removeChild(element);
  document.changed = true;
}

function isBlank(node: Node): boolean {
  return node.nodeType === node.TEXT_NODE && (node.nodeValue ?? '').trim() === '';
}

/**
 * Sets attributes that differ, and reports replaced values (of `secrets`, only that they were
 * replaced).
 */
export function setAttributes(
  document: ConfigurationDocument,
  element: Element,
  values: Record<string, string>,
  secrets: readonly string[] = [],
): void {
  for (const [name, value] of Object.entries(values)) {
    const old = element.getAttribute(name);
    if (old === value) continue;
    element.setAttribute(name, value);
    document.changed = true;
    if (old === null || old === '') continue;
    const place = `${pathOf(element)} ${name}`;
    document.messages.push(
      secrets.includes(name)
        ? `${place} was replaced`
        : `${place} is now ${JSON.stringify(value)}, was ${JSON.stringify(old.slice(0, 200))}`,
    );
  }
}

/** `auth/ldap`, `network/connector 8443`. */
function pathOf(element: Element): string {
  const names: string[] = [];
  for (let each: Node | null = element; each !== null && each.nodeType === each.ELEMENT_NODE; each = each.parentNode)
    names.unshift((each as Element).localName ?? '');
  const port = element.getAttribute('port');
  return names.slice(1).join('/') + (port === null ? '' : ` ${port}`);
}
