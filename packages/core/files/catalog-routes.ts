// Serves file metadata: searches, the list of the web pages, and changes.

import { z } from 'zod';
import { visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, htmlPage, json, wrapped } from '../http/answers.ts';
import {
  type AdminContext,
  type AdminRoute,
  flag,
  invalid,
  isAdmin,
  readJson,
  readText,
  wholeNumber,
} from '../http/route.ts';
import type { Resource } from '../model/mission.ts';
import type { ResourceChange, ResourceOrder, ResourceQuery } from '../store/resources.ts';
import {
  request,
  requestedDate,
  requestedHash,
  requestedKeywords,
  goodExpiration,
  goodKeywords,
  goodText,
  MAX_TOOL,
  pathHash,
  plainType,
  refuseParameters,
} from './query-parameters.ts';
import type { FilesOptions } from './options.ts';
import { toFileView, toMetadataView, toResourceView, textJson } from './file-views.ts';
import { ICON_SET, MISSION_PACKAGE } from './upload-routes.ts';

const MAX_BODY_BYTES = 4096;
const BYTES_PER_MEGABYTE = 1024 * 1024;

type Wanted = { hash?: string; id?: number };

/** What is changed of files that are there: deleted, and described anew. */
export function fileChanges(options: Pick<FilesOptions, 'resources' | 'people' | 'groups' | 'activeGroups' | 'log'>) {
  const { resources, log } = options;

  /** Resolves with why nothing was changed. */
  async function refusal(groups: number[] | 'all', wanted: Wanted): Promise<CoreFault> {
    if ((await resources.count({ groups, ...wanted })) === 0) return new CoreFault('not found', 'File not found.');
    return new CoreFault('forbidden', 'Only the submitter of the file and administrators may do this.');
  }

  /** Of others than an admin only what they have submitted themselves. */
  async function remove(c: AdminContext, wanted: Wanted): Promise<void> {
    const { caller } = c.env;
    const groups = await visiblePlaces(caller, options);
    const files = await resources.remove({ groups, ...wanted }, isAdmin(caller) ? undefined : caller.username);
    if (files === 0) throw await refusal(groups, wanted);
    log.info('file.deleted', { ...wanted, files, user: caller.username });
  }

  async function changeOf(c: AdminContext): Promise<ResourceChange> {
    const what = c.req.param('what');
    if (what === 'keywords') return { keywords: goodKeywords(await readJson(c, z.array(z.string()))) };
    const text = what === 'expiration' ? request(c, 'expiration') : undefined;
    const value = text ?? (await readText(c, MAX_BODY_BYTES)).trim();
    if (what === 'expiration') return { expiration: goodExpiration(value) };
    if (what === 'tool') return { tool: goodText('tool', value, MAX_TOOL) };
    if (what !== 'mimetype') throw new CoreFault('not found', 'A file has tool, mimetype, keywords and expiration.');
    const mimeType = plainType(value);
    if (mimeType === undefined) throw invalid('mimetype must be a type such as application/zip');
    return { mimeType };
  }

  /**
   * The tool may be set by whoever sees the file: devices that send it on say by it whether others
   * find it.
   */
  async function describe(c: AdminContext): Promise<Response> {
    const { caller } = c.env;
    const change = await changeOf(c);
    const hash = pathHash(c);
    const groups = await visiblePlaces(caller, options);
    const anybodys = isAdmin(caller) || change.tool !== undefined;
    const changed = await resources.change({ groups, hash }, change, anybodys ? undefined : caller.username);
    if (changed === 0) throw await refusal(groups, { hash });
    return emptyAnswer();
  }

  return { remove, describe };
}

/** Rows of an answer. */
const MAX_FOUND = 10_000;
const LAST_ID = 2_147_483_647;
const MAX_MISSION_NAME = 1024;
const ORDERS: Record<string, ResourceOrder> = {
  name: 'name',
  user: 'user',
  submitter: 'user',
  size: 'size',
  time: 'time',
  submissiontime: 'time',
  tool: 'tool',
  expiration: 'expiration',
};

export class CatalogRoutes {
  readonly #options: FilesOptions;
  readonly #changes;

  constructor(options: FilesOptions) {
    this.#options = options;
    this.#changes = fileChanges(options);
  }

  routes(): AdminRoute[] {
    const limit = Math.floor(this.#options.spool.maxBytes / BYTES_PER_MEGABYTE);
    return [
      { path: '/files/api/config', handlers: { GET: () => json({ uploadSizeLimit: limit }) } },
      { path: '/Marti/sync/search', handlers: { GET: (c) => this.#search(c) } },
      { path: '/Marti/sync/:hash/metadata', handlers: { GET: (c) => this.#metadata(c) } },
      { path: '/Marti/api/sync/search', handlers: { GET: (c) => this.#wrappedSearch(c) } },
      { path: '/Marti/api/iconset/all/uid', handlers: { GET: (c) => this.#listIconSets(c) } },
      { path: '/Marti/api/files/metadata', handlers: { GET: (c) => this.#listFiles(c) } },
      { path: '/Marti/api/files/metadata/count', handlers: { GET: (c) => this.#countFiles(c) } },
      {
        path: '/Marti/sync/delete',
        handlers: { POST: (c) => this.#deleteRequested(c), DELETE: (c) => this.#deleteRequested(c) },
      },
      { path: '/Marti/api/sync/metadata/:hash/:what', handlers: { PUT: this.#changes.describe } },
    ];
  }

  async #found(c: AdminContext): Promise<Resource[]> {
    refuseParameters(c, ['bbox', 'circle', 'minAltitude', 'maxAltitude']);
    const query: ResourceQuery = {
      groups: await visiblePlaces(c.env.caller, this.#options),
      hash: requestedHash(c),
      uid: request(c, 'uid'),
      nameContains: request(c, 'name'),
      keywords: requestedKeywords(c),
      tool: request(c, 'tool'),
      mission: request(c, 'mission', MAX_MISSION_NAME),
      since: requestedDate(c, 'startTime'),
      until: requestedDate(c, 'stopTime'),
    };
    return this.#options.resources.search(query, MAX_FOUND);
  }

  async #search(c: AdminContext): Promise<Response> {
    const results = (await this.#found(c)).map(toMetadataView);
    return textJson({ resultCount: results.length, results });
  }

  /** Of the newest of that hash that the caller may see. */
  async #metadata(c: AdminContext): Promise<Response> {
    const groups = await visiblePlaces(c.env.caller, this.#options);
    const file = await this.#options.resources.find({ groups, hash: pathHash(c) });
    if (file === undefined) throw new CoreFault('not found', 'File not found.');
    return textJson(toMetadataView(file));
  }

  async #wrappedSearch(c: AdminContext): Promise<Response> {
    return wrapped('Resource', (await this.#found(c)).map(toResourceView), this.#options.nodeId);
  }

  /** Files that were uploaded with the tool `iconset`. */
  async #listIconSets(c: AdminContext): Promise<Response> {
    const groups = await visiblePlaces(c.env.caller, this.#options);
    const found = await this.#options.resources.search({ groups, tool: ICON_SET }, MAX_FOUND);
    return wrapped('java.lang.String', [...new Set(found.map(({ uid }) => uid))], this.#options.nodeId);
  }

  async #queryOf(c: AdminContext): Promise<ResourceQuery> {
    return {
      groups: await visiblePlaces(c.env.caller, this.#options),
      nameContains: request(c, 'name'),
      mission: request(c, 'mission', MAX_MISSION_NAME),
      keywords: flag(c, 'missionPackage') ? [MISSION_PACKAGE] : [],
    };
  }

  /** Pages count from 1; without `limit` there is one. */
  async #listFiles(c: AdminContext): Promise<Response> {
    const limit = wholeNumber(c, 'limit', MAX_FOUND, -1);
    const page = Math.max(1, wholeNumber(c, 'page', 1, -1));
    const rows = limit > 0 ? Math.min(limit, MAX_FOUND) : MAX_FOUND;
    const sort = (request(c, 'sort') ?? 'time').toLowerCase();
    const order = Object.hasOwn(ORDERS, sort) ? ORDERS[sort] : undefined;
    if (order === undefined) throw invalid(`sort must be one of ${Object.keys(ORDERS).join(', ')}, not "${sort}"`);
    const offset = (page - 1) * rows;
    if (!Number.isSafeInteger(offset)) throw invalid('page is too large');
    const files = await this.#options.resources.list(await this.#queryOf(c), {
      order,
      ascending: flag(c, 'ascending'),
      limit: rows,
      offset,
    });
    return wrapped('Files', files.map(toFileView), this.#options.nodeId);
  }

  async #countFiles(c: AdminContext): Promise<Response> {
    return wrapped(
      'java.lang.Integer',
      await this.#options.resources.count(await this.#queryOf(c)),
      this.#options.nodeId,
    );
  }

  async #deleteRequested(c: AdminContext): Promise<Response> {
    const hash = requestedHash(c);
    const key = request(c, 'PrimaryKey');
    if (key !== undefined && !(/^\d{1,10}$/.test(key) && Number(key) <= LAST_ID))
      throw invalid(`PrimaryKey must be a number, not "${key}"`);
    if (hash === undefined && key === undefined) throw invalid('Hash or PrimaryKey is missing');
    await this.#changes.remove(c, {
      ...(hash === undefined ? {} : { hash }),
      ...(key === undefined ? {} : { id: Number(key) }),
    });
    return htmlPage(200, 'Deleted', 'The file was deleted.');
  }
}
