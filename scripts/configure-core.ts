// Entry of the role `configuration` with a release: its files.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { configureCore } from '@holdfast/setup/configuration/configure-core';

await runProgram(configureCore, resolve(import.meta.dirname, '..'));
