// Runs the backup service of the stack in containers.

import 'reflect-metadata';
import { runContainerBackupService } from '@holdfast/setup/containers/backup-service';

runContainerBackupService(process.env);
