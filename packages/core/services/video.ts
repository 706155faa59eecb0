// Serves video feeds: /Marti/api/video as JSON, /Marti/vcm as XML.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { messageOf } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { type GroupParts, sendingPlaces, visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, json } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, checked, invalid, isAdmin, readJson, readText } from '../http/route.ts';
import { parsedXml } from '../http/xml-body.ts';
import { label } from '../missions/request.ts';
import { escapeXml } from '../model/wire-text.ts';
import type { VideoConnectionRow, VideoConnections } from '../store/services.ts';

export interface VideoOptions extends GroupParts {
  video: VideoConnections;
}

const MAX_CONNECTIONS = 1_000;
const MAX_FEEDS = 20;
const text = label(255);
const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? null);
const PROTOCOLS = /^(rtsps?|rtmps?|srt|https?|udp|tcp|rtp|igmp):$/;

/** Everybody in its groups sees it: no password in it. */
const videoUrl = z
  .string()
  .max(2_000)
  .superRefine((url, context) => {
    const fault = urlFault(url);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  });

function urlFault(url: string): string | undefined {
  if (!URL.canParse(url)) return 'must be a URL such as rtsp://camera.example.org/live';
  const { protocol, username, password } = new URL(url);
  if (!PROTOCOLS.test(protocol))
    return `must not begin with ${protocol}: rtsp, rtmp, srt, http, https, udp, tcp, rtp or igmp`;
  if (username !== '' || password !== '')
    return 'must not contain credentials: everybody in its groups sees it. Publish the camera at a relay instead';
  return undefined;
}

const number = optional(z.union([z.number(), z.string().max(40)]).transform(String));
/** What clients send as text or not, kept as text; `otherwise` if they send nothing. */
const written = (otherwise: string, schema: z.ZodNumber | z.ZodBoolean = z.number()) =>
  z
    .union([schema.transform(String), text])
    .nullish()
    .transform((value) => value ?? otherwise);
const uuid = text
  .min(1)
  .nullish()
  .transform((value) => value ?? randomUUID());
const Feed = z.object({
  uuid,
  active: z.boolean().default(true),
  alias: text.min(1),
  url: videoUrl,
  order: optional(z.number().int()),
  macAddress: text.nullish().transform((value) => value ?? ''),
  roverPort: written('-1'),
  ignoreEmbeddedKLV: written('false', z.boolean()),
  source: optional(text),
  networkTimeout: written('5000'),
  bufferTime: written('-1'),
  rtspReliable: written('0'),
  thumbnail: optional(text),
  classification: optional(text),
  latitude: number,
  longitude: number,
  fov: number,
  heading: number,
  range: number,
  width: optional(z.number().int()),
  height: optional(z.number().int()),
  bitrate: optional(z.number().int()),
});
type FeedBody = z.infer<typeof Feed>;

const Connection = z.object({
  uuid,
  active: z.boolean().default(true),
  alias: text.min(1),
  thumbnail: optional(text),
  classification: optional(text),
  feeds: z.array(Feed).min(1).max(MAX_FEEDS),
});
type ConnectionBody = z.infer<typeof Connection>;
const Collections = z.object({ videoConnections: z.array(Connection).min(1).max(MAX_FEEDS) });

export class VideoRoutes {
  readonly #options: VideoOptions;
  readonly #video;

  constructor(options: VideoOptions) {
    this.#options = options;
    this.#video = options.video;
  }

  routes(): AdminRoute[] {
    return [
      { path: '/Marti/api/video', handlers: { GET: (c) => this.#list(c), POST: (c) => this.#create(c) } },
      {
        path: '/Marti/api/video/:uid',
        handlers: { GET: (c) => this.#read(c), PUT: (c) => this.#update(c), DELETE: (c) => this.#remove(c) },
      },
      {
        path: '/Marti/vcm',
        handlers: {
          GET: (c) => this.#listXml(c),
          POST: (c) => this.#createXml(c),
          DELETE: (c) => this.#removeFeed(c),
        },
      },
    ];
  }

  async #seen(c: AdminContext): Promise<ConnectionBody[]> {
    const rows = await this.#video.list(await visiblePlaces(c.env.caller, this.#options));
    return rows.map(({ body }) => body as unknown as ConnectionBody);
  }

  async #list(c: AdminContext): Promise<Response> {
    const protocol = c.req.query('protocol') ?? '';
    const isWanted = ({ url }: FeedBody): boolean => protocol === '' || new URL(url).protocol === `${protocol}:`;
    const connections = (await this.#seen(c))
      .map((each) => ({ ...each, feeds: each.feeds.filter(isWanted) }))
      .filter(({ feeds }) => feeds.length > 0);
    return json({ videoConnections: connections });
  }

  async #read(c: AdminContext): Promise<Response> {
    return json((await this.#row(c)).body);
  }

  /** What the caller does not see is not there. */
  async #row(c: AdminContext): Promise<VideoConnectionRow> {
    const uid = checked(text, c.req.param('uid') ?? '');
    const sees = await visiblePlaces(c.env.caller, this.#options);
    const row = (await this.#video.isVisible(uid, sees)) ? await this.#video.find(uid) : undefined;
    if (row === undefined) throw new CoreFault('not found', `Video connection ${uid} not found.`);
    return row;
  }

  async #ownRow(c: AdminContext): Promise<VideoConnectionRow> {
    const row = await this.#row(c);
    const { caller } = c.env;
    if (isAdmin(caller) || nameKey(row.submitter) === nameKey(caller.username)) return row;
    throw new CoreFault('forbidden', 'Only the person who added this video connection and administrators may do this.');
  }

  async #create(c: AdminContext): Promise<Response> {
    const { videoConnections: given } = await readJson(c, Collections);
    await this.#add(c, given);
    return emptyAnswer();
  }

  /** Nobody replaces what another has added. */
  async #add(c: AdminContext, given: readonly ConnectionBody[]): Promise<void> {
    const places = await sendingPlaces(c.env.caller, c.req.queries('group') ?? [], this.#options);
    if ((await this.#video.count()) + given.length > MAX_CONNECTIONS)
      throw new CoreFault('conflict', `There can be at most ${MAX_CONNECTIONS} video connections. Delete old ones.`);
    for (const { uuid } of given)
      if ((await this.#video.find(uuid)) !== undefined)
        throw new CoreFault('conflict', `There is a video connection ${uuid} already: change it by PUT.`);
    for (const body of given)
      await this.#video.save({ uid: body.uuid, submitter: c.env.caller.username, body }, places);
  }

  async #update(c: AdminContext): Promise<Response> {
    const body = await readJson(c, Connection);
    const row = await this.#ownRow(c);
    await this.#video.save({ ...row, body: { ...body, uuid: row.uid } }, undefined);
    return emptyAnswer();
  }

  async #remove(c: AdminContext): Promise<Response> {
    await this.#video.remove((await this.#ownRow(c)).uid);
    return emptyAnswer();
  }

  async #listXml(c: AdminContext): Promise<Response> {
    const feeds = (await this.#seen(c)).flatMap((connection) => connection.feeds);
    const written = feeds.filter(({ active }) => active).map(feedXml);
    const document = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><videoConnections>${written.join('')}</videoConnections>`;
    return new Response(document, { headers: { 'content-type': 'application/xml' } });
  }

  async #createXml(c: AdminContext): Promise<Response> {
    const given = feedsIn(await readText(c)).map((feed) => checked(Connection, feed));
    if (given.length === 0 || given.length > MAX_FEEDS) throw invalid(`a list has 1 to ${MAX_FEEDS} feeds`);
    await this.#add(c, given);
    return emptyAnswer();
  }

  /** By the uid of the feed's connection. */
  async #removeFeed(c: AdminContext): Promise<Response> {
    const id = checked(text.min(1), c.req.query('id') ?? '');
    const connection = (await this.#seen(c)).find(
      ({ uuid, feeds }) => uuid === id || feeds.some((each) => each.uuid === id),
    );
    if (connection === undefined) throw new CoreFault('not found', `Video feed ${id} not found.`);
    const row = await this.#video.find(connection.uuid);
    const { caller } = c.env;
    if (row === undefined || !(isAdmin(caller) || nameKey(row.submitter) === nameKey(caller.username)))
      throw new CoreFault('forbidden', 'Only the person who added this video feed and administrators may do this.');
    await this.#video.remove(row.uid);
    return emptyAnswer();
  }
}

function feedXml(feed: FeedBody): string {
  const { protocol, hostname, port, pathname, search } = new URL(feed.url);
  const members: [string, string | null][] = [
    ['protocol', protocol.slice(0, -1)],
    ['alias', feed.alias],
    ['uid', feed.uuid],
    ['address', hostname],
    ['port', port === '' ? '-1' : port],
    ['roverPort', feed.roverPort],
    ['ignoreEmbeddedKLV', feed.ignoreEmbeddedKLV],
    ['preferredMacAddress', feed.macAddress],
    ['path', `${pathname}${search}`],
    ['buffer', feed.bufferTime],
    ['timeout', feed.networkTimeout],
    ['rtspReliable', feed.rtspReliable],
    ['latitude', feed.latitude],
    ['longitude', feed.longitude],
    ['heading', feed.heading],
    ['fov', feed.fov],
    ['range', feed.range],
    ['active', String(feed.active)],
  ];
  const inside = members.map(([name, value]) => (value === null ? '' : `<${name}>${escapeXml(value)}</${name}>`));
  return `<feed>${inside.join('')}</feed>`;
}

/** Each feed as a connection of its own. */
function feedsIn(xml: string): object[] {
  try {
    return [...parsedXml(xml).getElementsByTagName('feed')].map((feed) => {
      const of = (name: string): string => feed.getElementsByTagName(name)[0]?.textContent?.trim() ?? '';
      const port = Number(of('port')) > 0 ? `:${of('port')}` : '';
      const path = of('path') === '' || of('path').startsWith('/') ? of('path') : `/${of('path')}`;
      const url = of('protocol') === 'raw' ? of('address') : `${of('protocol')}://${of('address')}${port}${path}`;
      const uuid = of('uid') || randomUUID();
      const alias = of('alias');
      return { uuid, alias, feeds: [{ uuid, alias, url, macAddress: of('preferredMacAddress') || undefined }] };
    });
  } catch (cause) {
    throw invalid(`the body is no list of feeds: ${messageOf(cause)}`);
  }
}
