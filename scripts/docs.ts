// Builds the documents as a site in dist/docs, which opens from the disk (npm run docs).

import { resolve } from 'node:path';
import { buildDocs } from '@holdfast/setup/docs-site';

const problems = await buildDocs(resolve(import.meta.dirname, '..'));
if (problems.length > 0) throw new Error(`The documents have broken links:\n${problems.join('\n')}`);
