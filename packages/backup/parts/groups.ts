// Makes the groups that restored rows belong to mean the same in the running core. A row names them
// by places in a vector: at another place another group would see it.

import { StackError } from '@holdfast/kit/app-error';
import { type Databases, freeId } from './rows.ts';

interface Placed {
  name: string;
  bitpos: number;
  type: number;
}

/**
 * `vectors`: a query for one column of vectors, with `$1` for `value`. Rejects with a StackError.
 */
export async function takeGroups({ from, to }: Databases, vectors: string, value: string): Promise<void> {
  const wanted = await from.unsafe<(Placed & { id: string })[]>(
    `SELECT DISTINCT g.id::text, g.name, g.bitpos, g.type FROM (SELECT v.groups || B'' AS bits FROM (${vectors}) v OFFSET 0) plain
      CROSS JOIN groups g WHERE CASE WHEN g.bitpos < length(plain.bits)
        THEN get_bit(plain.bits, length(plain.bits) - 1 - g.bitpos) = 1 ELSE false END ORDER BY g.bitpos`,
    [value],
  );
  for (const { id, ...group } of wanted) {
    const found = await to<Placed[]>`
      SELECT name, bitpos, type FROM groups WHERE name = ${group.name} OR bitpos = ${group.bitpos}`;
    if (found.some((each) => each.name === group.name && each.bitpos === group.bitpos)) continue;
    // As the core adds one.
    await to`LOCK TABLE groups IN SHARE ROW EXCLUSIVE MODE`;
    const [sequence] = await to<{ last: number }[]>`SELECT last_value::float8 AS last FROM group_bitpos_sequence`;
    if (found.length > 0 || group.bitpos > (sequence?.last ?? 0)) throw otherPlace(group.name);
    const newId = await freeId(to, { table: 'groups', column: 'id', sequence: 'groups_id_seq' }, id);
    await to`
      INSERT INTO groups (id, name, bitpos, type) VALUES (${newId}::text::int, ${group.name}, ${group.bitpos}, ${group.type})`;
  }
}

function otherPlace(name: string): StackError {
  return new StackError(
    `The group ${name} of the archive has another number in this stack, so other people could see what is restored. Nothing was changed.`,
    'restore the whole archive into a stack of its own, and copy from there with a device',
  );
}
