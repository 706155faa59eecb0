// Builds the programs and the documents of dist/ (npm run build).

import { resolve } from 'node:path';
import { buildPrograms } from '@holdfast/setup/build';
import { buildDocs } from '@holdfast/setup/docs-site';

const home = resolve(import.meta.dirname, '..');
await buildPrograms(home);
// A document that was edited here is no reason not to start: `npm run docs` names broken links.
await buildDocs(home);
