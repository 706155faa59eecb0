// A random world of rows for runs of retention, as SQL for the tables of both cores: times tied and at the limits to a fraction of
// a millisecond, or none; uids and files that doomed and surviving missions share; every type, and every kind of keyword.

import { RETAINED, type RetentionLimits } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';

export interface RandomWorld {
  sql: string;
  /** Rows that point at events, and missions with a parent: the statements of a release fail on such. */
  pointing: string;
  limits: RetentionLimits;
  exemptKeywords: string[];
}

const START_MS = Date.parse('2026-01-01T00:00:00Z');
const DAYS = 60;
const WORDS = ['missionpackage', 'keep', 'Keep', 'a "quoted", {word}', "o'neil", 'back\\slash', ''];
const TYPES = ['a-f-G-U-C', 'a-f-G-U-C', 'a-f-G-U-C', 'b-t-f', 'b-t-f', 'b-t-f-d', 'b-t-f-r', 'B-T-F', '', undefined];

/** The same seed is the same world. */
export function randomWorld(seed: number): RandomWorld {
  const random = mulberry(seed);
  const below = (most: number): number => Math.floor(random() * most);
  const chance = (share: number): boolean => random() < share;
  const one = <T>(of: readonly T[]): T => of[below(of.length)] as T;
  const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n + 1));

  const moments = many(12, () => START_MS + below(DAYS * DAY_MS));
  const limits: RetentionLimits = Object.fromEntries(
    RETAINED.filter(() => chance(0.8)).map((type) => [type, new Date(one(moments)).toISOString()]),
  );
  const exemptKeywords = WORDS.filter((word) => word !== 'missionpackage' && chance(0.3));
  if (chance(0.1)) exemptKeywords.push('missionpackage');

  /** Often one of few moments, or within a millisecond of it. */
  const at = (): string => {
    if (chance(0.04)) return 'NULL';
    if (chance(0.4)) return `'${new Date(START_MS + below(DAYS * DAY_MS)).toISOString()}'`;
    const beside = chance(0.5) ? 0 : below(4_000) - 2_000;
    return `'${new Date(one(moments)).toISOString()}'::timestamptz + interval '${beside} us'`;
  };
  const text = (value: string | undefined): string =>
    value === undefined ? 'NULL' : `'${value.replaceAll("'", "''")}'`;
  const values = (into: string, rows: readonly (readonly (string | number)[])[]): string =>
    rows.length === 0
      ? ''
      : `INSERT INTO ${into} VALUES ${rows.map((row) => `(${row.join()})`).join()} ON CONFLICT DO NOTHING;\n`;

  const [events, chats, files, missions] = [below(2_500) + 1, below(1_500), below(90), below(9)];
  const uids = many(25, (n) => (n === 1 ? '' : `Ünit-${n}`));
  const keywords = (): string => {
    if (chance(0.2)) return 'NULL';
    const own = many(below(4), () => (chance(0.1) ? 'NULL' : text(one(WORDS))));
    return `ARRAY[${own.join()}]::varchar[]`;
  };
  const name = (n: number): string => text(n === 1 ? 'exchecktemplates' : n === 2 ? 'citrap' : `mission ${below(5)}`);
  const held = <T>(of: (mission: number) => T): T[] =>
    many(missions, (n) => n).flatMap((n) => many(below(5), () => of(n)));
  const hash = (file: number): string => `hash ${file % 70}`;

  return {
    limits,
    exemptKeywords,
    sql: [
      values(
        'cot_router (id, uid, cot_type, servertime)',
        many(events, (n) => [n, text(one(uids)), text(one(TYPES)), at()]),
      ),
      values(
        'cot_router_chat (id, uid, cot_type, servertime)',
        many(chats, (n) => [n, text(one(uids)), "'b-t-f'", at()]),
      ),
      values(
        'resource (id, name, hash, keywords, submissiontime, data)',
        many(files, (n) => [
          n,
          n,
          chance(0.05) ? 'NULL' : text(hash(n)),
          keywords(),
          at(),
          chance(0.1) ? 'NULL' : "'x'",
        ]),
      ),
      values(
        'mission (id, name, create_time, invite_only)',
        many(missions, (n) => [n, name(n), at().replace('NULL', "'2026-01-01'"), String(chance(0.15))]),
      ),
      values(
        'mission_uid (mission_id, uid)',
        held((n) => [n, text(one([...uids, 'no events']))]),
      ),
      values(
        'mission_resource (mission_id, resource_id, resource_hash)',
        held((n) => {
          const file = below(files + 5) + 1;
          return [n, file, text(hash(file))];
        }),
      ),
      values(
        'mission_keyword (mission_id, keyword)',
        held((n) => [n, text(one(WORDS))]),
      ),
      values(
        'mission_uid_keyword (mission_id, uid, keyword)',
        held((n) => [n, text(one(uids)), "'k'"]),
      ),
      values(
        'mission_resource_keyword (mission_id, hash, keyword)',
        held((n) => [n, text(hash(below(70))), "'k'"]),
      ),
      values(
        'mission_subscription (mission_id, client_uid, username, uid, role_id)',
        held((n) => [n, text(one(uids)), "'ann'", "'s'", 1]),
      ),
    ].join(''),
    pointing: [
      values(
        'cot_image (id, cot_id)',
        many(20, (n) => [n, chance(0.2) ? 'NULL' : below(events) + 1]),
      ),
      values(
        'cot_thumbnail (id, cot_id, cot_image_id)',
        many(20, (n) => [n, chance(0.3) ? 'NULL' : below(events) + 1, chance(0.3) ? 'NULL' : below(20) + 1]),
      ),
      values(
        'cot_link (id, containing_event)',
        many(20, (n) => [n, chance(0.2) ? 'NULL' : below(events) + 1]),
      ),
      ...held((n) => `UPDATE mission SET parent_mission_id = ${below(missions) + 1} WHERE id = ${n};\n`),
    ].join(''),
  };
}

function mulberry(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
