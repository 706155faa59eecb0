// Parses LDAP requests (RFC 4511): envelope, operation, controls.

import { BerError, Elements, ENUMERATED, SEQUENCE } from './ber.ts';
import { type Filter, FilterError, type FilterLimits, readFilter } from './filter.ts';
import { type Control, RESULT, type Result } from './result.ts';

export type Scope = 'base' | 'one' | 'subtree' | 'children';

export interface BindRequest {
  kind: 'bind';
  version: number;
  /** Undefined when it is not UTF-8; so is the password. */
  name: string | undefined;
  method: 'simple' | 'other';
  password: string | undefined;
}

export interface SearchRequest {
  kind: 'search';
  base: string | undefined;
  scope: Scope;
  /** 0: none. */
  sizeLimit: number;
  timeLimitSeconds: number;
  typesOnly: boolean;
  filter: Filter;
  /** In lower case. */
  wanted: string[];
  /** The request without its controls: a page is continued only by the same search. */
  bytes: Buffer;
}

export interface CompareRequest {
  kind: 'compare';
  name: string | undefined;
  attribute: string;
  value: string | undefined;
}

export interface ExtendedRequest {
  kind: 'extended';
  oid: string;
}

/** Answered with a fixed result. */
export interface SettledRequest {
  kind: 'settled';
  result: Result;
}

export type AnsweredRequest = SearchRequest | CompareRequest | ExtendedRequest | SettledRequest;
export type Request = BindRequest | AnsweredRequest | { kind: 'unbind' } | { kind: 'abandon'; id: number };

export interface Message<R extends Request = Request> {
  id: number;
  request: R;
  /** Tag of the answer; 0 when there is none. */
  answerTag: number;
  controls: Control[];
}

const READ_ONLY = new Map([
  [0x66, 0x67],
  [0x68, 0x69],
  [0x4a, 0x6b],
  [0x6c, 0x6d],
]);
const SCOPES: readonly Scope[] = ['base', 'one', 'subtree', 'children'];

/** Throws BerError for bytes that are no request. */
export function readMessage(bytes: Buffer, limits: FilterLimits): Message {
  const envelope = new Elements(new Elements(bytes).next(SEQUENCE).content);
  const id = envelope.integer();
  if (id < 1) throw new BerError('message id out of range');
  const { tag, content } = envelope.next();
  const { request, answerTag } = readOperation(tag, content, limits);
  const controls = envelope.tag === 0xa0 ? readControls(envelope.within(0xa0)) : [];
  return { id, request, answerTag, controls };
}

function readOperation(tag: number, content: Buffer, limits: FilterLimits): { request: Request; answerTag: number } {
  switch (tag) {
    case 0x60:
      return { request: readBind(content), answerTag: 0x61 };
    case 0x42:
      return { request: { kind: 'unbind' }, answerTag: 0 };
    case 0x63:
      return { request: readSearch(content, limits), answerTag: 0x65 };
    case 0x6e:
      return { request: readCompare(content), answerTag: 0x6f };
    case 0x50:
      if (content.length < 1 || content.length > 4) throw new BerError('integer out of range');
      return { request: { kind: 'abandon', id: content.readIntBE(0, content.length) }, answerTag: 0 };
    case 0x77:
      return { request: { kind: 'extended', oid: new Elements(content).text(0x80) ?? '' }, answerTag: 0x78 };
    default: {
      const answerTag = READ_ONLY.get(tag);
      if (answerTag === undefined) throw new BerError('unknown operation');
      const result = { code: RESULT.insufficientAccessRights, text: 'the directory is read-only' };
      return { request: { kind: 'settled', result }, answerTag };
    }
  }
}

function readBind(content: Buffer): BindRequest {
  const elements = new Elements(content);
  const version = elements.integer();
  const name = elements.text();
  const simple = elements.tag === 0x80;
  const password = simple ? elements.text(0x80) : undefined;
  if (!simple) elements.next();
  return { kind: 'bind', version, name, method: simple ? 'simple' : 'other', password };
}

function readSearch(content: Buffer, limits: FilterLimits): SearchRequest | SettledRequest {
  const elements = new Elements(content);
  const base = elements.text();
  const scope = SCOPES[elements.integer(ENUMERATED)];
  elements.integer(ENUMERATED);
  const sizeLimit = elements.integer();
  const timeLimitSeconds = elements.integer();
  const typesOnly = elements.boolean();
  const filterElement = elements.next();
  const names = elements.within();
  const wanted: string[] = [];
  while (!names.done) wanted.push((names.text() ?? '').toLowerCase());
  if (scope === undefined || sizeLimit < 0 || timeLimitSeconds < 0) {
    return { kind: 'settled', result: { code: RESULT.protocolError, text: 'scope or limit out of range' } };
  }
  try {
    const filter = readFilter(filterElement, limits);
    return { kind: 'search', base, scope, sizeLimit, timeLimitSeconds, typesOnly, filter, wanted, bytes: content };
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    return { kind: 'settled', result: { code: RESULT.protocolError, text: error.message } };
  }
}

function readCompare(content: Buffer): CompareRequest {
  const elements = new Elements(content);
  const name = elements.text();
  const assertion = elements.within();
  return { kind: 'compare', name, attribute: (assertion.text() ?? '').toLowerCase(), value: assertion.text() };
}

function readControls(elements: Elements): Control[] {
  const controls: Control[] = [];
  while (!elements.done) {
    const control = elements.within();
    const oid = control.text() ?? '';
    const critical = control.tag === 0x01 ? control.boolean() : false;
    const value = control.tag === 0x04 ? control.next().content : undefined;
    controls.push({ oid, critical, value });
  }
  return controls;
}
