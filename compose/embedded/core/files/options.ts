// What the routes of files are made from.

import type { Log } from '../../../../shared/ports/log.ts';
import type { GroupParts } from '../admin/own-groups.ts';
import type { ResourceWriter } from '../store/resource-bytes.ts';
import type { ResourceStore } from '../store/resources.ts';
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
