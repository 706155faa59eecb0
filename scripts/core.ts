// Runs the embedded core.

import 'reflect-metadata';
import { runCore } from '@holdfast/stack/core-process';

runCore(process.env);
