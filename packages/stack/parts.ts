// Lists what a stack has directly in its data directory.

import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Layout } from './process/layout.ts';
import { BEFORE_ROTATION } from './secrets.ts';

/** The data before an upgrade, in the data directory. A version follows. */
export const BEFORE_UPGRADE = 'before-upgrade-';
/** Data that an upgrade put aside on its way back. A version follows. */
export const SET_ASIDE = 'set-aside-upgrade-';
/** Until a copy is complete. */
export const PARTIAL = '.partial';

/** Everything of the stack directly in the root, except the directory of the lock. */
export function partsOf(layout: Layout): string[] {
  const own = new Set(
    Object.values(layout).filter((path: string) => dirname(path) === layout.root && path !== layout.run),
  );
  const made = readdirSync(layout.root)
    .filter(
      (name) =>
        name.startsWith(`${basename(layout.secrets)}${BEFORE_ROTATION}`) ||
        /^(?:(?:pgdata|secrets\.json|stack\.json|pg_hba\.conf)\.new|pg_hba\.conf)$/.test(name),
    )
    .map((name) => join(layout.root, name));
  return [...own, ...made];
}

/** Copies of the data that upgrades made. */
export function upgradeCopies({ root }: Layout): string[] {
  return readdirSync(root)
    .filter((name) => name.startsWith(BEFORE_UPGRADE) || name.startsWith(SET_ASIDE))
    .map((name) => join(root, name));
}

/** What an upgrade saves, and puts back when it fails: everything but the logs. */
export function savedParts(layout: Layout): string[] {
  return partsOf(layout)
    .filter((path) => path !== layout.logs && existsSync(path))
    .map((path) => basename(path));
}
