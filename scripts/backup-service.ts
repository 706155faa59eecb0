// Runs the backup service of the embedded stack.

import 'reflect-metadata';
import { runBackupService } from '@holdfast/stack/proof/service-process';

runBackupService(process.env);
