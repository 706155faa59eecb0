// Lists the programs of the stack whose releases the module `updates` watches.

import { IMAGES, imageVersion, RELEASE } from '@holdfast/kit/release';
import type { Mode } from '../settings/rules.ts';
import type { Part } from './monitored.ts';

export interface PartFacts {
  mode: Mode;
  /** OWNER/REPOSITORY of Holdfast itself at GitHub; undefined: it is not watched. */
  repository: string | undefined;
  /** The release of a TAK Server that the images were built from. */
  coreRelease: string | undefined;
  databaseVersion: () => Promise<string>;
  identityVersion: () => Promise<string>;
  nodeVersion: string;
}

/** The images of both stacks in containers. */
const OF_CONTAINERS = [
  { name: 'Caddy', image: 'caddy', product: 'caddyserver/caddy' },
  { name: 'Node-RED', image: 'flows', product: 'node-red/node-red' },
  { name: 'MediaMTX', image: 'video', product: 'bluenviron/mediamtx' },
];

/** `images`: those that compose.yaml pins. */
export function partsOf(facts: PartFacts, images: Readonly<Record<string, string>> = IMAGES): Part[] {
  const { mode, repository, coreRelease, databaseVersion, identityVersion, nodeVersion } = facts;
  const github = (name: string, product: string, version: () => Promise<string>): Part => ({
    name,
    source: { at: 'github', product },
    version,
    cycleParts: 0,
  });
  const parts: Part[] = [
    {
      name: 'PostgreSQL',
      source: { at: 'endoflife', product: 'postgresql' },
      version: databaseVersion,
      cycleParts: 1,
      notes: (version) => `https://www.postgresql.org/docs/release/${version}/`,
    },
    {
      name: 'Node.js',
      source: { at: 'endoflife', product: 'nodejs' },
      version: async () => nodeVersion,
      cycleParts: 1,
      notes: (version) => `https://nodejs.org/en/blog/release/v${version}`,
    },
  ];
  if (repository !== undefined) parts.unshift(github('Holdfast', repository, async () => RELEASE));
  if (mode === 'embedded') return parts;
  for (const { name, image, product } of OF_CONTAINERS) {
    const version = imageVersion(images[image]);
    if (version !== undefined) parts.push(github(name, product, async () => version));
  }
  if (mode === 'light') return parts;
  parts.push(github('authentik', 'goauthentik/authentik', identityVersion));
  if (coreRelease !== undefined)
    parts.push({
      ...github('TAK Server', 'TAK-Product-Center/Server', async () => coreRelease),
      mayBeUnlisted: true,
    });
  return parts;
}
