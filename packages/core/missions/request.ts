// Parses mission requests: names, texts, dates, bodies. Refuses invalid values by name.

import { z } from 'zod';
import { CoreFault } from '../http/answers.ts';
import { type AdminContext, checked, demanded, invalid, jsonAs, readText } from '../http/route.ts';
import { MISSION_LIMITS, MISSION_ROLES, type MissionDraft } from '../model/mission.ts';
import type { ChangeWindow, MissionKey } from '../store/missions.ts';
import { isPossiblePassword } from './credentials.ts';

/** Segments of the API that a mission cannot be called. */
const RESERVED = new Set(['all', 'guid', 'hierarchy', 'invitations', 'logs']);
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
/** Tabs and line ends may be in a description. */
const UNPRINTABLE_TEXT = /[^\P{C}\t\r\n\p{Cf}\p{Co}\p{Cn}]/u;
const GUID = /^\{?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?$/i;

/** A short text on one line. */
export const label = (most: number) =>
  z
    .string()
    .max(most)
    .refine((text) => !UNPRINTABLE.test(text), 'has characters that cannot be printed');
/** Several lines. */
export const longText = z
  .string()
  .max(MISSION_LIMITS.text)
  .refine((given) => !UNPRINTABLE_TEXT.test(given), 'has characters that cannot be printed');
const corner = z
  .string()
  .max(60)
  .regex(/^-?\d+(\.\d+)?,-?\d+(\.\d+)?$/, 'must be lat,lon in degrees');
const contentUid = label(MISSION_LIMITS.uid).min(1);
const role = z.enum(MISSION_ROLES);
const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? undefined);

const Report = z.object({
  description: optional(longText),
  chatRoom: optional(longText),
  baseLayer: optional(longText),
  bbox: optional(longText),
  boundingPolygon: optional(z.array(corner).max(MISSION_LIMITS.corners)),
  path: optional(longText),
  classification: optional(longText),
  tool: optional(label(128).min(1)),
  defaultRole: optional(z.union([role, z.object({ type: role }).transform(({ type }) => type)])),
  expiration: optional(z.number().int().min(-1).max(Number.MAX_SAFE_INTEGER)),
  inviteOnly: optional(z.boolean()),
  groups: optional(z.array(label(255)).max(1_000)),
});

export interface MissionRequest {
  draft: Omit<MissionDraft, 'passwordHash'>;
  password: string | undefined;
  /** Names; undefined when none were said. */
  groups: string[] | undefined;
}

/** The query, and a JSON body whose members stand above it. */
export async function missionRequest(c: AdminContext): Promise<MissionRequest> {
  const fromQuery = {
    ...Object.fromEntries(TEXTS.map((name) => [name, textOf(c, name)])),
    boundingPolygon: pairsOf(c.req.queries('boundingPolygon')),
    defaultRole: textOf(c, 'defaultRole'),
    expiration: reportedNumber(c, 'expiration'),
    inviteOnly: reportedFlag(c, 'inviteOnly'),
    groups: listOf(c.req.queries('group')),
  };
  const fromBody = await jsonBody(c, z.record(z.string(), z.unknown()));
  const given = {
    ...fromQuery,
    ...Object.fromEntries(Object.entries(fromBody ?? {}).filter(isReported)),
  };
  const { groups, ...draft } = checked(Report, given);
  const password = textOf(c, 'password');
  if (password !== undefined && !isPossiblePassword(password)) throw invalid('password must have 1 to 256 characters');
  return { draft, password, groups };
}

/**
 * Corners may be emptied; an empty list of groups says as little as an empty `group` in the query.
 */
function isReported([name, value]: [string, unknown]): boolean {
  return value !== null && !(name === 'groups' && Array.isArray(value) && value.length === 0);
}

const TEXTS = ['description', 'chatRoom', 'baseLayer', 'bbox', 'path', 'classification', 'tool'];

const sha256 = z
  .string()
  .regex(/^[0-9a-fA-F]{64}$/, 'must be a SHA-256 in hex')
  .transform((hash) => hash.toLowerCase());
const members = <T extends z.ZodType>(schema: T) =>
  z
    .array(schema)
    .max(MISSION_LIMITS.added)
    .nullish()
    .transform((value) => value ?? []);
const Contents = z.object({ hashes: members(sha256), uids: members(contentUid) });
const Filed = Contents.extend({ after: optional(contentUid) });
const Paths = z.record(contentUid, z.array(Filed).max(MISSION_LIMITS.added)).nullish();

/** Contents, and those that are filed in a layer of the mission. */
export interface ContentsRequest {
  hashes: string[];
  uids: string[];
  filed: { layerUid: string; hashes: string[]; uids: string[]; afterUid: string | undefined }[];
}

export function isContentUid(uid: string): boolean {
  return contentUid.safeParse(uid).success;
}

export async function contentsRequest(c: AdminContext): Promise<ContentsRequest> {
  const body = await jsonBody(c, z.looseObject({}));
  const { hashes, uids } = checked(Contents, body ?? {});
  const paths = checked(Paths, body?.['paths']) ?? {};
  const filed = Object.entries(paths).flatMap(([layerUid, each]) =>
    each.map(({ after, ...rest }) => ({ ...rest, layerUid, afterUid: after })),
  );
  const count = [{ hashes, uids }, ...filed].reduce((sum, each) => sum + each.hashes.length + each.uids.length, 0);
  if (count === 0) throw invalid('at least one of hashes, uids and paths must hold something');
  if (count > MISSION_LIMITS.added) throw invalid(`at most ${MISSION_LIMITS.added} contents can be added at once`);
  return { hashes, uids, filed };
}

export async function keywordsRequest(c: AdminContext): Promise<string[]> {
  const body = await jsonBody(c, z.unknown());
  return checked(z.array(label(MISSION_LIMITS.keyword).min(1)).max(MISSION_LIMITS.keywords), body);
}

/** Of the path: a name, trimmed, or a guid. */
export function missionKey(c: AdminContext): MissionKey {
  const guid = c.req.param('guid');
  if (guid !== undefined) return { guid: guidOf(guid) };
  const name = (c.req.param('name') ?? '').trim();
  if (UNPRINTABLE.test(name)) throw invalid('the name of a mission has printable characters only');
  return { name };
}

export function guidOf(given: string): string {
  const guid = readGuid(given);
  if (guid === undefined) throw invalid('the guid of a mission must be a UUID');
  return guid;
}

/** In lower case, without braces; undefined for what is none. */
export function readGuid(given: string): string | undefined {
  return GUID.exec(given)?.[1]?.toLowerCase();
}

/** Throws for a name that no new mission can have. */
export function requireMissionName(name: string): void {
  const read = label(MISSION_LIMITS.name).min(1).safeParse(name);
  if (!read.success) throw invalid(`the name of a mission has 1 to ${MISSION_LIMITS.name} printable characters`);
  if (name.includes('/') || name.includes('\\')) throw invalid('the name of a mission has no slashes');
  if (RESERVED.has(name)) throw invalid(`no mission can be called "${name}": that is an address of the API`);
}

/** Of the path. */
export function keywordOf(c: AdminContext): string {
  const keyword = c.req.param('keyword') ?? '';
  if (label(MISSION_LIMITS.keyword).safeParse(keyword).success) return keyword;
  throw invalid(`a keyword has at most ${MISSION_LIMITS.keyword} printable characters`);
}

/** A uid, a name or a part of one in the query; empty when it is not there. */
export function reportedUid(c: AdminContext, name: string): string {
  const given = c.req.query(name) ?? '';
  if (label(MISSION_LIMITS.uid).safeParse(given).success) return given;
  throw invalid(`${name} must have at most ${MISSION_LIMITS.uid} printable characters`);
}

export function uidDemanded(c: AdminContext, name: string): string {
  demanded(c, name);
  return reportedUid(c, name);
}

export function roleDemanded(c: AdminContext): (typeof MISSION_ROLES)[number] {
  const read = role.safeParse(c.req.query('role'));
  if (read.success) return read.data;
  throw invalid(`role must be one of ${MISSION_ROLES.join(', ')}`);
}

/** `secago` counts before `start` and `end`. */
export function changeWindow(c: AdminContext, now: Date, squashed: boolean): ChangeWindow {
  const secago = reportedNumber(c, 'secago');
  if (secago !== undefined) {
    if (secago < 0) throw invalid('secago must be 0 or more');
    return { start: new Date(Math.max(0, now.getTime() - secago * 1000)), end: undefined, squashed };
  }
  const start = reportedDate(c, 'start');
  const end = reportedDate(c, 'end');
  if (start !== undefined && end !== undefined && start > end) throw invalid('start lies after end');
  return { start, end, squashed };
}

const DATE = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)?$/;

/** Of ISO 8601; without an offset one of UTC. Undefined for what is none. */
function readDate(given: string): Date | undefined {
  if (!DATE.test(given)) return undefined;
  const date = new Date(/(?:Z|[+-]\d\d:?\d\d)$/.test(given) ? given : `${given}Z`);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** A date in JSON. */
export const isoDate = z.string().transform((given, context) => {
  const date = readDate(given.slice(0, 40));
  if (date !== undefined) return date;
  context.addIssue({ code: 'custom', message: 'must be a date like 2026-11-22T10:00:00.000Z' });
  return z.NEVER;
});

function reportedDate(c: AdminContext, name: string): Date | undefined {
  const given = textOf(c, name);
  if (given === undefined) return undefined;
  const date = readDate(given);
  if (date === undefined) throw invalid(`${name} must be a date like 2026-11-22T10:00:00.000Z`);
  return date;
}

/** Undefined for a text that is empty: devices send every parameter. */
function textOf(c: AdminContext, name: string): string | undefined {
  const given = c.req.query(name);
  return given === '' ? undefined : given;
}

function reportedNumber(c: AdminContext, name: string): number | undefined {
  const given = textOf(c, name);
  if (given === undefined) return undefined;
  if (/^-?\d{1,15}$/.test(given)) return Number(given);
  throw invalid(`${name} must be a whole number, not "${given.slice(0, 40)}"`);
}

function reportedFlag(c: AdminContext, name: string): boolean | undefined {
  const given = textOf(c, name)?.toLowerCase();
  return given === undefined ? undefined : given === 'true';
}

/** `a,b` once, or one each. */
function listOf(given: string[] | undefined): string[] | undefined {
  const all = (given ?? []).flatMap((each) => each.split(',')).filter((each) => each !== '');
  return all.length === 0 ? undefined : [...new Set(all)];
}

/** `lat,lon` each: a single one with commas may hold several. */
function pairsOf(given: string[] | undefined): string[] | undefined {
  const all = (given ?? []).flatMap((each) => each.match(/[^,]+,[^,]+/g) ?? [each]).filter((each) => each !== '');
  return all.length === 0 ? undefined : all;
}

/** Undefined without a body. */
async function jsonBody<T>(c: AdminContext, schema: z.ZodType<T>): Promise<T | undefined> {
  const body = await readText(c);
  if (body.trim() === '') return undefined;
  const type = c.req.header('content-type') ?? '';
  if (!type.toLowerCase().includes('json'))
    throw new CoreFault(
      'invalid',
      'Invalid Request: send JSON as application/json. A mission package goes to contents/missionpackage.',
    );
  return jsonAs(schema, body);
}
