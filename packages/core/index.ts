// Exports what a process needs to run the core: the core and its database migrations.

export type { ClusterOptions } from './cluster.ts';
export { type Core, createCore } from './core.ts';
export { missingFromFirstNode } from './first-node.ts';
export type { CoreDirectory } from './model/parts.ts';
export { sessionName, type WorkingNodes, workingNodes } from './store/node-sessions.ts';
export { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from './store/migrations/index.ts';
