// Runs the program of `npm run dev:workerd`.

import { resolve } from 'node:path';
import { messageOf } from '@holdfast/kit/app-error';
import { runDevWorkerd } from '@holdfast/stack/dev-workerd';

const home = resolve(import.meta.dirname, '..');
const call = { home, argv: process.argv.slice(2), cwd: process.cwd(), environment: process.env };
runDevWorkerd(call).catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
});
