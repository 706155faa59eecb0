// What the flow engine's role may do in a core's database, asked of the database itself.

import { expect } from 'vitest';
import { FLOWS_TABLES } from '@holdfast/stack/database/roles';
import { query } from './embedded.ts';

/**
 * As the owner sees it: the tables of FLOWS_TABLES that are there, to be read, and nothing else.
 */
export async function expectFlowsRights(ownerUrl: string): Promise<void> {
  const rights = await query<{ name: string; has: string[] }>(
    ownerUrl,
    `SELECT relname AS name, ARRAY(SELECT privilege_type FROM aclexplode(relacl)
       WHERE grantee = 'holdfast_flows'::regrole) AS has
     FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S') ORDER BY relname`,
  );
  const wanted = rights.map(({ name }) => ({
    name,
    has: FLOWS_TABLES.some((each) => each === name) ? ['SELECT'] : [],
  }));
  expect(rights).toEqual(wanted);
  const given = wanted.filter(({ has }) => has.length > 0).map(({ name }) => name);
  expect(given).toEqual(expect.arrayContaining(['client_endpoint', 'cot_router', 'cot_router_chat', 'mission_uid']));
}
