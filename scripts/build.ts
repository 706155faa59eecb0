// Builds the programs of dist/ (npm run build).

import { resolve } from 'node:path';
import { buildPrograms } from '@holdfast/setup/build';

await buildPrograms(resolve(import.meta.dirname, '..'));
