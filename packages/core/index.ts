// The front door for who runs the core: the core, and the migrations that its database needs first.

export { type Core, createCore } from './core.ts';
export type { CoreDirectory } from './model/parts.ts';
export { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from './store/migrations/index.ts';
