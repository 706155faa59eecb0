// Proves one backup in a scratch instance; the backup service and backup.sh start it.

import 'reflect-metadata';
import { runProof } from '@holdfast/stack/proof/program';

await runProof(process.env);
