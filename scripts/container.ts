// Runs a role of our image: `container.js ROLE`.

import { resolve } from 'node:path';
import { runContainer } from '@holdfast/setup/containers/program';

await runContainer(
  resolve(import.meta.dirname, '..'),
  process.argv[2] ?? '',
  (program) => import(new URL(program, import.meta.url).href),
);
