// What a guide is, and what it is told of the server and of whoever reads it.

import type { Child } from 'hono/jsx';
import type { ServerFacts } from './server-facts.ts';

export interface GuideFacts extends ServerFacts {
  username: string;
  /** Where one's own package is, for an app; undefined when that is not known now. */
  packageFor(app: 'atak' | 'itak'): string | undefined;
}

export interface Guide {
  title: string;
  /** In the list of guides. */
  about: string;
  body(facts: GuideFacts): Child;
}
