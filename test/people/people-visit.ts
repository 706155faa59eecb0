// Somebody at the pages about people, in a world with accounts, groups and certificates.

import type { Face } from '../../shared/http/context.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { type PeopleWorld, peopleWorld } from './fake-people.ts';

interface PeopleVisit extends Visitor {
  world: PeopleWorld;
  /** The page of the person of that name. */
  pathOf: (username: string) => Promise<string>;
}

export async function peopleVisit(options: { username?: string; face?: Face } = {}): Promise<PeopleVisit> {
  const world = await peopleWorld();
  const visitor = await visit({ username: 'webadmin', ...options, deps: world.deps, around: world.around });
  return { ...visitor, world, pathOf: async (username) => `/people/${(await world.named(username)).id}` };
}

/** What a person reads of it: without tags, each blank once. */
export function textOf(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll(/\s+/g, ' ');
}

/** The values of the boxes of that name that are ticked. */
export function tickedIn(html: string, name = 'groups'): string[] {
  return [...html.matchAll(/<input type="(?:checkbox|radio)"[^>]*>/g)]
    .map(([tag]) => tag)
    .filter((tag) => tag.includes(`name="${name}"`) && tag.includes('checked'))
    .map((tag) => /value="([^"]*)"/.exec(tag)?.[1] ?? '');
}
