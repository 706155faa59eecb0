// Reads the texts and names of the repository: identifiers, texts of the interface, comments, documents.

import { parseAst } from 'rolldown/parseAst';
import { textOf } from '../house.ts';

export interface Found {
  /** `file:line`. */
  at: string;
  text: string;
}

interface Node {
  type: string;
  start: number;
  [key: string]: unknown;
}

const WORD = /[\p{L}\p{N}$%][\p{L}\p{N}$%'’./:_@-]*/gu;
const NAMED = [
  'VariableDeclarator',
  'FunctionDeclaration',
  'FunctionExpression',
  'ClassDeclaration',
  'TSInterfaceDeclaration',
];
const MEMBERS = ['PropertyDefinition', 'MethodDefinition', 'TSPropertySignature', 'TSMethodSignature'];

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string';

/** Calls `visit` for each node, with those around it, the nearest first. */
function walk(node: Node, visit: (node: Node, around: readonly Node[]) => void, around: readonly Node[] = []): void {
  visit(node, around);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) walk(child, visit, [node, ...around]);
    }
  }
}

function parsed(file: string): { program: Node; lineAt: (position: number) => number } {
  const source = textOf(file);
  const program = parseAst(source, { lang: file.endsWith('x') ? 'tsx' : 'ts' }, file) as unknown as Node;
  const starts = [...source.matchAll(/^/gm)].map(({ index }) => index);
  return { program, lineAt: (position) => starts.findLastIndex((start) => start <= position) + 1 };
}

/** The names that a file declares: variables, functions, parameters, types, members of types and classes; not those of data. */
export function declaredNames(file: string): Found[] {
  const { program, lineAt } = parsed(file);
  const found: Found[] = [];
  const add = (node: unknown): void => {
    if (!isNode(node)) return;
    if (node.type === 'Identifier' || node.type === 'PrivateIdentifier') {
      found.push({ at: `${file}:${lineAt(node.start)}`, text: String(node['name']) });
    } else if (node.type === 'ObjectPattern') {
      for (const property of node['properties'] as Node[]) add(property['value'] ?? property['argument']);
    } else if (node.type === 'ArrayPattern') {
      for (const element of node['elements'] as unknown[]) add(element);
    } else if (node.type === 'AssignmentPattern') add(node['left']);
    else if (node.type === 'RestElement') add(node['argument']);
  };
  walk(program, (node) => {
    if (NAMED.includes(node.type) || node.type === 'TSTypeAliasDeclaration') add(node['id']);
    if (MEMBERS.includes(node.type) && node['computed'] !== true) add(node['key']);
    if (Array.isArray(node['params'])) for (const parameter of node['params'] as unknown[]) add(parameter);
  });
  return found;
}

/** SQL, shell, HTML and the like, which nobody reads as a text. */
const CODE =
  /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|ORDER|WHERE|FROM|AND|SET|JOIN|LEFT|GROUP|LIMIT|EXISTS|DO \$)\b|<html|^exec |=>|^[\w./-]+$|(^| )ß=/;

/** Texts that people read: string literals of several words, templates (a value stands as `$`), and text between tags. */
export function textsOf(file: string): Found[] {
  const { program, lineAt } = parsed(file);
  const found: Found[] = [];
  const add = (node: Node, text: string): void => {
    const plain = text.replaceAll(/\s+/g, ' ').trim();
    if (/\p{L}+ \p{L}/u.test(plain) && !CODE.test(plain))
      found.push({ at: `${file}:${lineAt(node.start)}`, text: plain });
  };
  /** Each line of a help text by itself; what its columns hold as sentences of their own. */
  const addLines = (node: Node, text: string): void => {
    if (!CODE.test(text)) for (const line of text.split(/\n\s*/)) add(node, line.replaceAll(/ {2,}/g, '. '));
  };
  walk(program, (node, [parent]) => {
    if (node.type === 'Literal' && typeof node['value'] === 'string' && parent?.type !== 'ImportDeclaration') {
      addLines(node, node['value']);
    } else if (node.type === 'JSXText') add(node, String(node['value']));
    else if (node.type === 'TemplateLiteral' && parent?.type !== 'TaggedTemplateExpression') {
      addLines(node, (node['quasis'] as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('$'));
    }
  });
  return found;
}

/** Sentences of more than `most` words. */
export function longSentences(texts: readonly Found[], most: number): string[] {
  return texts.flatMap(({ at, text }) =>
    text
      .split(/(?<=[.!?:;])\s+/)
      .filter((sentence) => (sentence.match(WORD) ?? []).length > most)
      .map((sentence) => `${at}: ${(sentence.match(WORD) ?? []).length} words: ${sentence}`),
  );
}
