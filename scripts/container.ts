// Runs a role of our image: `container.js ROLE`, or a step of it: `container.js database export`.

import { resolve } from 'node:path';
import { runContainer } from '@holdfast/setup/containers/program';

await runContainer(
  resolve(import.meta.dirname, '..'),
  process.argv[2] ?? '',
  (program) => import(new URL(program, import.meta.url).href),
  process.argv[3],
);
