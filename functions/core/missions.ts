// /api/missions and /api/mission-archives: lists, archives, deletes and restores missions of the
// core.

import { z } from '@hono/zod-openapi';
import {
  archiveMission,
  deleteArchive,
  deleteMission,
  downloadArchive,
  missionOf,
  restoreMission,
} from '../../shared/core/missions/change.ts';
import type { CoreMission, CoreMissionDetail, MissionArchive } from '../../shared/core/missions/port.ts';
import { dispositionOf } from '../../shared/http/answers.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { pageOf, pagingQuery } from '../../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../../shared/http/route.ts';
import { actingIn } from '../../shared/http/sign-in.ts';

const tags = ['missions'];
const time = z.iso.datetime().nullable();
const author = z.string().openapi({ description: 'uid of a device, or empty' });

const missionShape = {
  guid: z.string(),
  name: z.string(),
  description: z.string(),
  creator_uid: author,
  created_at: time,
  last_edited_at: time,
  keywords: z.array(z.string()),
  has_password: z.boolean(),
  invite_only: z.boolean(),
  size: z.object({ items: z.int(), files: z.int(), bytes: z.number() }).openapi({ description: 'bytes: of the files' }),
};
const missionSchema = z.object(missionShape).openapi('Mission');
const listSchema = pageOf(missionSchema, 'MissionPage').extend({
  messages: z.array(z.string()).openapi({ description: 'Says if the core left something out' }),
});
const detailSchema = z
  .object({
    ...missionShape,
    groups: z.array(z.string()).openapi({ description: 'As devices see them, without core_' }),
    members: z.array(z.object({ client_uid: z.string(), username: z.string(), role: z.string(), since: time })),
    files: z.array(
      z.object({
        name: z.string(),
        hash: z.string(),
        mime_type: z.string(),
        bytes: z.number(),
        added_at: time,
        added_by: author,
      }),
    ),
    items: z.array(
      z.object({ uid: z.string(), callsign: z.string(), type: z.string(), added_at: time, added_by: author }),
    ),
    log: z.array(z.object({ content: z.string(), author, at: time })),
    changes: z.array(z.object({ type: z.string(), subject: z.string(), author, at: time })),
  })
  .openapi('MissionDetail');
const archiveSchema = z
  .object({
    id: z.string(),
    guid: z.string().openapi({ description: 'Of the mission; after a restore, of the new one' }),
    name: z.string(),
    groups: z.array(z.string()),
    protected: z.boolean().openapi({ description: 'It had a password or was by invitation: so is a restored one' }),
    kept_at: z.iso.datetime(),
    bytes: z.number(),
  })
  .openapi('MissionArchive');

const guid = { params: z.object({ guid: z.uuid('must be the guid of a mission') }) };
const id = { params: z.object({ id: z.uuid('must be the id of an archive') }) };

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/missions',
    summary: 'Lists missions by name, with their size',
    tags,
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page of missions', listSchema) },
  },
  { access: 'viewer', fails: ['invalid', 'upstream', 'unavailable'] },
);
const oneRoute = apiRoute(
  {
    method: 'get',
    path: '/api/missions/{guid}',
    summary: 'Returns a mission with its members, contents, log and changes',
    tags,
    request: guid,
    responses: { 200: jsonAnswer('The mission', detailSchema) },
  },
  { access: 'viewer', fails: ['invalid', 'not_found', 'upstream', 'unavailable'] },
);
const deleteRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/missions/{guid}',
    summary: 'Deletes a mission; subscribed devices are told, its files stay at the core',
    tags,
    request: guid,
    responses: { 204: { description: 'The mission is deleted' } },
  },
  { access: 'admin', fails: ['invalid', 'not_found', 'upstream', 'unavailable'] },
);
const keepRoute = apiRoute(
  {
    method: 'post',
    path: '/api/missions/{guid}/archive',
    summary: 'Keeps an archive of a mission on this server; the mission stays',
    tags,
    request: guid,
    responses: { 201: jsonAnswer('The archive', archiveSchema) },
  },
  { access: 'admin', fails: ['invalid', 'not_found', 'conflict', 'upstream', 'unavailable'] },
);
const archivesRoute = apiRoute(
  {
    method: 'get',
    path: '/api/mission-archives',
    summary: 'Lists kept archives of missions, newest first',
    tags,
    responses: { 200: jsonAnswer('All archives', z.array(archiveSchema)) },
  },
  { access: 'viewer', fails: ['unavailable'] },
);
const contentRoute = apiRoute(
  {
    method: 'get',
    path: '/api/mission-archives/{id}/content',
    summary: 'Downloads an archive: a data package that the core and TAK clients import',
    tags,
    request: id,
    responses: {
      200: {
        description: 'The archive',
        content: { 'application/zip': { schema: z.string().openapi({ format: 'binary' }) } },
      },
    },
  },
  { access: 'admin', fails: ['invalid', 'not_found', 'unavailable'] },
);
const restoreRoute = apiRoute(
  {
    method: 'post',
    path: '/api/mission-archives/{id}/restore',
    summary: 'Makes a mission of an archive; members subscribe again, a protected one is by invitation only',
    tags,
    request: id,
    responses: { 201: jsonAnswer('The archive, with the guid of the new mission', archiveSchema) },
  },
  { access: 'admin', fails: ['invalid', 'not_found', 'conflict', 'upstream', 'unavailable'] },
);
const forgetRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/mission-archives/{id}',
    summary: 'Deletes a kept archive',
    tags,
    request: id,
    responses: { 204: { description: 'The archive is deleted' } },
  },
  { access: 'admin', fails: ['invalid', 'not_found', 'unavailable'] },
);

/** Adds the routes of this file. */
export function missionsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listMissions(c) {
    const { page, page_size: pageSize } = c.req.valid('query');
    const { missions, messages } = await deps.coreMissions.list();
    const results = missions.slice((page - 1) * pageSize, page * pageSize).map(toMissionView);
    c.header('Cache-Control', 'no-store');
    return c.json({ results, count: missions.length, page, page_size: pageSize, messages }, 200);
  });
  app.openapi(oneRoute, async function showMission(c) {
    const mission = await missionOf(deps, c.req.valid('param').guid);
    c.header('Cache-Control', 'no-store');
    return c.json(toDetailView(mission), 200);
  });
  app.openapi(deleteRoute, async function removeMission(c) {
    await deleteMission(actingIn(c, deps), c.req.valid('param').guid);
    return c.body(null, 204);
  });
  app.openapi(keepRoute, async function keepArchive(c) {
    const archive = await archiveMission(actingIn(c, deps), c.req.valid('param').guid);
    return c.json(toArchiveView(archive), 201);
  });
  app.openapi(archivesRoute, async function listArchives(c) {
    const archives = await deps.missionArchives.list();
    c.header('Cache-Control', 'no-store');
    return c.json(archives.map(toArchiveView), 200);
  });
  app.openapi(contentRoute, async function sendArchive(c) {
    const { archive, body } = await downloadArchive(actingIn(c, deps), c.req.valid('param').id);
    return c.newResponse(body, 200, {
      'Content-Type': 'application/zip',
      'Content-Length': String(archive.bytes),
      'Content-Disposition': dispositionOf(`${archive.name}.zip`),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
  });
  app.openapi(restoreRoute, async function restoreArchive(c) {
    const restored = await restoreMission(actingIn(c, deps), c.req.valid('param').id);
    return c.json(toArchiveView(restored), 201);
  });
  app.openapi(forgetRoute, async function removeArchive(c) {
    await deleteArchive(actingIn(c, deps), c.req.valid('param').id);
    return c.body(null, 204);
  });
}

function toMissionView(mission: CoreMission): z.infer<typeof missionSchema> {
  const { guid: missionGuid, name, description, keywords, size } = mission;
  return {
    guid: missionGuid,
    name,
    description,
    keywords,
    size,
    creator_uid: mission.creatorUid,
    created_at: mission.createdAt,
    last_edited_at: mission.lastEditedAt,
    has_password: mission.hasPassword,
    invite_only: mission.inviteOnly,
  };
}

function toDetailView(mission: CoreMissionDetail): z.infer<typeof detailSchema> {
  const { groups, members, files, items, log, changes } = mission;
  return {
    ...toMissionView(mission),
    groups,
    members: members.map(({ clientUid, ...member }) => ({ ...member, client_uid: clientUid })),
    files: files.map(({ mimeType, addedAt, addedBy, ...file }) => ({
      ...file,
      mime_type: mimeType,
      added_at: addedAt,
      added_by: addedBy,
    })),
    items: items.map(({ addedAt, addedBy, ...item }) => ({ ...item, added_at: addedAt, added_by: addedBy })),
    log,
    changes,
  };
}

function toArchiveView(archive: MissionArchive): z.infer<typeof archiveSchema> {
  const { id: archiveId, guid: missionGuid, name, groups, hasPassword, inviteOnly, keptAt, bytes } = archive;
  const isProtected = hasPassword || inviteOnly;
  return { id: archiveId, guid: missionGuid, name, groups, protected: isProtected, kept_at: keptAt, bytes };
}
