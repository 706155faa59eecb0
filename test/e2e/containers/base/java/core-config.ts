// CoreConfig.xml as the programs of a release read it: everything that they need must be there, or
// they say what is not.

import { existsSync, readFileSync } from 'node:fs';
import { DOMParser, type Element } from '@xmldom/xmldom';

/** What a program says before it ends with 1. */
export class Refused extends Error {}

export const HOME = '/opt/tak';
const NAMESPACE = 'http://bbn.com/marti/xml/config';

/** In the order in which a release looks for it. */
export function coreConfigFile(places = ['conf/CoreConfig.xml', 'CoreConfig.xml', 'CoreConfig.example.xml']): string {
  const found = places.map((place) => `${HOME}/${place}`).find((place) => existsSync(place));
  if (found === undefined) throw new Refused(`There is no CoreConfig.xml in ${HOME}`);
  return found;
}

export class CoreConfig {
  readonly root: Element;
  readonly #file: string;
  readonly #text: string;

  constructor(file = coreConfigFile()) {
    this.#file = file;
    this.#text = readFileSync(file, 'utf8');
    const root = new DOMParser().parseFromString(this.#text, 'text/xml').documentElement;
    if (root?.localName !== 'Configuration' || root.namespaceURI !== NAMESPACE)
      throw new Refused(`${file} has no Configuration of ${NAMESPACE}`);
    this.root = root;
  }

  all(path: string): Element[] {
    return path
      .split('/')
      .reduce<Element[]>((parents, name) => parents.flatMap((each) => childrenOf(each, name)), [this.root]);
  }

  only(path: string): Element {
    const [found, second] = this.all(path);
    if (found === undefined || second !== undefined)
      throw new Refused(`${this.#file} must have one ${path}, not ${String(this.all(path).length)}`);
    return found;
  }

  /** The value of an attribute that must be there and say something. */
  must(element: Element, name: string, wanted?: string): string {
    const value = element.getAttribute(name) ?? '';
    if (value === '' || (wanted !== undefined && value !== wanted))
      throw new Refused(`${this.#file}: ${element.tagName}@${name} must be ${wanted ?? 'set'}, not '${value}'`);
    return value;
  }

  /** As the programs and, by text, the scripts of the database read it. */
  database(): { url: string; user: string; password: string } {
    const connection = this.only('repository/connection');
    const password = this.must(connection, 'password');
    const line = this.#text.split('\n').find((each) => each.includes('<connection')) ?? '';
    const inText = /password="([^"]*)"/.exec(line)?.[1];
    if (inText !== password)
      throw new Refused(`${this.#file}: the first line with <connection does not hold the password as it is`);
    return { url: this.must(connection, 'url'), user: this.must(connection, 'username'), password };
  }

  connector(port: string): Element {
    const found = this.all('network/connector').find((each) => each.getAttribute('port') === port);
    if (found === undefined) throw new Refused(`${this.#file} has no connector at ${port}`);
    return found;
  }
}

/** jdbc:postgresql://host:port/name */
export function databaseUrl(jdbc: string, user: string, password: string): string {
  if (!jdbc.startsWith('jdbc:postgresql://')) throw new Refused(`'${jdbc}' is no URL of a PostgreSQL`);
  const url = new URL(jdbc.slice('jdbc:'.length));
  url.username = user;
  url.password = encodeURIComponent(password);
  return url.href;
}

function childrenOf(parent: Element, name: string): Element[] {
  return [...parent.childNodes].filter((node): node is Element => node.nodeType === 1 && node.nodeName === name);
}
