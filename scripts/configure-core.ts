// Runs the role `configuration` for a TAK Server release: writes its files.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { configureCore } from '@holdfast/setup/configuration/configure-core';

await runProgram(configureCore, resolve(import.meta.dirname, '..'));
