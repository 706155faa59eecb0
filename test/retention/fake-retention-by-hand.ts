// What a run of retention deletes, decided row by row without SQL: the rules once more, to hold the statements to.

import type postgres from 'postgres';
import { RETAINED, type Retained } from '@holdfast/kit/retention';
import type { ExpiredRows, FactsQuestion } from '../../shared/retention/port.ts';

interface Event {
  id: number;
  uid: string;
  type: string | null;
  at: string | null;
}

interface File {
  id: number;
  hash: string | null;
  keywords: (string | null)[];
  bytes: number;
  at: string | null;
}

interface Mission {
  id: number;
  name: string;
  inviteOnly: boolean;
  at: string;
  uids: string[];
  fileIds: number[];
  fileHashes: string[];
}

interface Chat {
  id: number;
  at: string | null;
}

export interface Rows {
  events: Event[];
  chat: Chat[];
  files: File[];
  missions: Mission[];
}

/** Everything that there is. */
export async function readRows(sql: postgres.Sql): Promise<Rows> {
  const at = (column: string): string => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  const list = (column: string, table: string): string =>
    `coalesce((SELECT json_agg(${column}) FROM ${table} h WHERE h.mission_id = m.id), '[]')`;
  const read = async <T>(text: string): Promise<T[]> =>
    (await sql.unsafe(`SELECT to_json(row) AS row FROM (${text}) row`)).map((each) => each['row'] as T);
  return {
    events: await read(`SELECT id, uid, cot_type AS type, ${at('servertime')} AS at FROM cot_router`),
    chat: await read(`SELECT id, ${at('servertime')} AS at FROM cot_router_chat`),
    files: await read(
      `SELECT id, hash, coalesce(keywords, '{}') AS keywords, pg_column_size(data) AS bytes, ${at('submissiontime')} AS at FROM resource`,
    ),
    missions:
      await read(`SELECT id, name, invite_only AS "inviteOnly", ${at('create_time')} AS at, ${list('uid', 'mission_uid')} AS uids,
      ${list('resource_id', 'mission_resource')} AS "fileIds", ${list('resource_hash', 'mission_resource')} AS "fileHashes" FROM mission m`),
  };
}

/** The ids of all rows, ascending, without those that go. */
export function idsOf(rows: Rows, going?: GoingRows): Record<keyof Rows, number[]> {
  const left = (all: readonly { id: number }[], ...gone: (readonly { id: number }[] | undefined)[]): number[] => {
    const ids = new Set(gone.flatMap((each) => each ?? []).map(({ id }) => id));
    return all
      .map(({ id }) => id)
      .filter((id) => !ids.has(id))
      .toSorted((a, b) => a - b);
  };
  return {
    events: left(rows.events, going?.cot, going?.legacyChat, going?.withMissions.events),
    chat: left(rows.chat, going?.chat),
    files: left(rows.files, going?.files, going?.missionpackages, going?.withMissions.files),
    missions: left(rows.missions, going?.missions),
  };
}

type ByHand = Pick<ExpiredRows, 'oldest' | 'newest'> & { rows: number };

/** The rows themselves, each in one place. */
export interface GoingRows {
  missions: Mission[];
  withMissions: { events: Event[]; files: File[] };
  files: File[];
  missionpackages: File[];
  cot: Event[];
  chat: Chat[];
  legacyChat: Event[];
}

/** Of a type without a limit nothing goes. */
export function goingByHand(rows: Rows, question: Omit<FactsQuestion, 'withinMs'>): GoingRows {
  const { core, limits, exemptKeywords } = question;
  const isOld = (type: Retained, at: string | null): boolean => at !== null && at < (limits[type] ?? '');
  const isGoing = ({ name, inviteOnly, at }: Mission): boolean =>
    isOld('missions', at) && !['exchecktemplates', 'citrap'].includes(name) && !inviteOnly;

  const [going, staying] = [rows.missions.filter(isGoing), rows.missions.filter((each) => !isGoing(each))];
  const stayingUids = new Set(staying.flatMap(({ uids }) => uids));
  const goingUids = new Set(going.flatMap(({ uids }) => uids));
  const stayingIds = new Set(staying.flatMap(({ fileIds }) => fileIds));
  const goingIds = new Set(going.flatMap(({ fileIds }) => fileIds));
  const goingHashes = new Set(going.flatMap(({ fileHashes }) => fileHashes));
  const goesAlong = {
    event: ({ uid }: Event) => goingUids.has(uid) && (core === 'release' || !stayingUids.has(uid)),
    file: ({ id, hash }: File) =>
      core === 'release' ? goingHashes.has(hash ?? '') : goingIds.has(id) && !stayingIds.has(id),
  };

  const events = rows.events.filter((each) => !goesAlong.event(each));
  const files = rows.files.filter((each) => !goesAlong.file(each));
  const isExempt = ({ keywords }: File): boolean =>
    keywords.some((each) => each !== null && exemptKeywords.includes(each));
  const isPackage = ({ keywords }: File): boolean => keywords.includes('missionpackage');
  const filesOf = (type: 'files' | 'missionpackages'): File[] =>
    files.filter(
      (each) =>
        isOld(type, each.at) &&
        !stayingIds.has(each.id) &&
        !isExempt(each) &&
        (core === 'release' ? type === 'files' : isPackage(each) === (type === 'missionpackages')),
    );
  return {
    missions: going,
    withMissions: { events: rows.events.filter(goesAlong.event), files: rows.files.filter(goesAlong.file) },
    files: filesOf('files'),
    missionpackages: filesOf('missionpackages'),
    cot: events.filter(
      ({ uid, type, at }) =>
        isOld('cot', at) && type !== null && type !== 'b-t-f' && !stayingUids.has(uid) && !goingUids.has(uid),
    ),
    chat: rows.chat.filter(({ at }) => isOld('geochat', at)),
    legacyChat: events.filter(({ type, at }) => isOld('geochat', at) && type === 'b-t-f'),
  };
}

export function expiredByHand(
  rows: Rows,
  question: FactsQuestion,
): Partial<Record<Retained, ByHand & Partial<ExpiredRows>>> {
  const { missions, withMissions, files, missionpackages, cot, chat, legacyChat } = goingByHand(rows, question);
  const bytes = (list: File[]) => ({ ...spanned(list), bytes: list.reduce((sum, each) => sum + each.bytes, 0) });
  const included = { cot: withMissions.events.length, files: withMissions.files.length };
  const all = {
    cot: spanned(cot),
    geochat: spanned([...chat, ...legacyChat]),
    files: bytes(files),
    missionpackages: bytes(missionpackages),
    missions: { ...spanned(missions), included },
  };
  return Object.fromEntries(
    RETAINED.filter((type) => question.limits[type] !== undefined).map((type) => [type, all[type]]),
  );
}

function spanned(rows: readonly { at: string | null }[]): ByHand {
  const times = rows.map(({ at }) => at ?? '').toSorted();
  return { rows: rows.length, oldest: times[0] ?? null, newest: times.at(-1) ?? null };
}
