// Runs the programs of backup.sh for the embedded stack.

import { resolve } from 'node:path';
import { runProgram } from '@holdfast/kit/command';
import { partProgram } from '@holdfast/stack/archive/program';
import { backupProgram } from '@holdfast/stack/operator/backup';

const isAboutArchive = ['show', 'restore'].includes(process.argv[2] ?? '');
await runProgram(isAboutArchive ? partProgram : backupProgram, resolve(import.meta.dirname, '..'));
