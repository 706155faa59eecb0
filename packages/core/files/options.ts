// Defines the options of the file routes.

import type { Log } from '@holdfast/kit/log';
import type { GroupParts } from '../groups/own-groups.ts';
import type { ResourceStore, ResourceWriter } from '../store/resources.ts';
import type { Spool } from './spool.ts';

export interface FilesOptions extends GroupParts {
  /** In every wrapped answer: `readNodeId`. */
  nodeId: string;
  /** SERVER_ADDRESS. */
  hostname: string;
  /** Of 8443, as devices reach it. */
  publicPort: number;
  resources: ResourceStore;
  resourceWriter: ResourceWriter;
  /** Where files lie on their way into the database. */
  spool: Spool;
  now: () => Date;
  log: Log;
}
