// Runs the programs of backup.sh and setup.sh --restore in containers.

import 'reflect-metadata';
import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { containerBackupProgram } from '@holdfast/setup/containers/backup-program';

await runProgram(containerBackupProgram, resolve(import.meta.dirname, '..'));
