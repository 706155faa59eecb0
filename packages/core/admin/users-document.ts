// Parses UserAuthenticationFile.xml, and changes single entries of it in place.

import { type Document, DOMParser, type Element, type Node, XMLSerializer } from '@xmldom/xmldom';
import { messageOf } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { CORE_ROLES } from '../http/route.ts';
import type { CoreRole } from '../model/parts.ts';

export const USERS_NAMESPACE = 'http://bbn.com/marti/xml/bindings';
export const EMPTY_USERS = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<UserAuthenticationFile xmlns="${USERS_NAMESPACE}">
</UserAuthenticationFile>
`;
const ROOT = 'UserAuthenticationFile';
const FINGERPRINT = /^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/;

/** What is wrong with the file, with its line. */
export class UsersFault extends Error {}

export interface UsersEntry {
  identifier: string;
  /** `AA:BB:…`; undefined for a user of the file only. */
  fingerprint: string | undefined;
  role: CoreRole;
}

export interface UsersDocument {
  document: Document;
  entries: (UsersEntry & { element: Element })[];
}

/** Throws a UsersFault. A document type is refused: it could define entities. */
export function readUsersDocument(text: string): UsersDocument {
  const document = parse(text);
  if (document.doctype !== null) throw new UsersFault('a document type (DOCTYPE) is not allowed');
  const root = document.documentElement;
  if (root?.localName !== ROOT || root.namespaceURI !== USERS_NAMESPACE)
    throw new UsersFault(`its root must be ${ROOT} of the namespace ${USERS_NAMESPACE}`);
  return { document, entries: usersIn(root).map((element) => ({ element, ...readEntry(element) })) };
}

/**
 * The text of the document after the entry was added, or took the place of the ones of the same
 * identifier.
 */
export function withEntry({ document, entries }: UsersDocument, entry: Required<UsersEntry>): string {
  const same = entries.filter(({ identifier }) => identifier === entry.identifier).map(({ element }) => element);
  const kept = same.pop() ?? appendUser(document);
  for (const element of same) removeWithBlanks(element);
  kept.setAttribute('identifier', entry.identifier);
  kept.setAttribute('fingerprint', entry.fingerprint ?? '');
  kept.setAttribute('role', entry.role);
  return textOf(document);
}

/**
 * The text of the document without the entries of that name, in any case; undefined when there are
 * none.
 */
export function withoutEntry({ document, entries }: UsersDocument, identifier: string): string | undefined {
  const gone = entries.filter((each) => nameKey(each.identifier) === nameKey(identifier));
  if (gone.length === 0) return undefined;
  for (const { element } of gone) removeWithBlanks(element);
  return textOf(document);
}

function textOf(document: Document): string {
  const written = new XMLSerializer().serializeToString(document);
  return written.endsWith('\n') ? written : `${written}\n`;
}

/** Every warning of the parser counts: it would guess what was meant. */
function parse(text: string): Document {
  if (text.includes('<!DOCTYPE')) throw new UsersFault('a document type (DOCTYPE) is not allowed');
  let fault: UsersFault | undefined;
  const onError = (_level: string, message: string, context: { locator?: { lineNumber?: number } }): never => {
    fault ??= new UsersFault(`line ${context.locator?.lineNumber ?? 1}: ${message.split('\n')[0]}`);
    throw fault;
  };
  try {
    return new DOMParser({ onError }).parseFromString(text.replace(/^\uFEFF/, ''), 'text/xml');
  } catch (error) {
    throw fault ?? new UsersFault(messageOf(error).split('\n')[0] ?? 'it is no XML');
  }
}

function usersIn(root: Element): Element[] {
  return Array.from(root.childNodes).filter(
    (node): node is Element =>
      node.nodeType === node.ELEMENT_NODE &&
      (node as Element).localName === 'User' &&
      node.namespaceURI === USERS_NAMESPACE,
  );
}

function readEntry(element: Element): UsersEntry {
  const place = `line ${element.lineNumber ?? '?'}`;
  const identifier = element.getAttribute('identifier') ?? '';
  if (identifier === '') throw new UsersFault(`${place}: a User without identifier`);
  const role = element.getAttribute('role') ?? 'ROLE_ANONYMOUS';
  if (!isRole(role))
    throw new UsersFault(`${place}: the role "${role}" of "${identifier}" is none of ${CORE_ROLES.join(', ')}`);
  const fingerprint = (element.getAttribute('fingerprint') ?? '').trim().toUpperCase();
  if (fingerprint === '') return { identifier, fingerprint: undefined, role };
  if (!FINGERPRINT.test(fingerprint))
    throw new UsersFault(
      `${place}: the fingerprint of "${identifier}" is not a SHA-256 fingerprint in the form AA:BB:…`,
    );
  return { identifier, fingerprint, role };
}

function isRole(text: string): text is CoreRole {
  return (CORE_ROLES as readonly string[]).includes(text);
}

function appendUser(document: Document): Element {
  const root = document.documentElement;
  if (root === null) throw new UsersFault('it has no root');
  const element = document.createElementNS(USERS_NAMESPACE, root.prefix === null ? 'User' : `${root.prefix}:User`);
  const last = root.lastChild;
  const indented = last !== null && isBlank(last) ? last : null;
  root.insertBefore(document.createTextNode('\n    '), indented);
  root.insertBefore(element, indented);
  if (indented === null) root.appendChild(document.createTextNode('\n'));
  return element;
}

function removeWithBlanks(element: Element): void {
  const before = element.previousSibling;
  if (before !== null && isBlank(before)) before.parentNode?.removeChild(before);
  element.parentNode?.removeChild(element);
}

function isBlank(node: Node): boolean {
  return node.nodeType === node.TEXT_NODE && (node.nodeValue ?? '').trim() === '';
}

/** Its common name, the uid of its client, and the name of its files. */
export const API_IDENTITY = 'svc_api';

/** In the directory of the core. */
export const USERS_FILE = 'UserAuthenticationFile.xml';
