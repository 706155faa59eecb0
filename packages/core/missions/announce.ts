// Announces mission changes on the stream. Devices read elements and attributes by these names.

import { randomUUID } from 'node:crypto';
import { nameKey } from '@holdfast/kit/names';
import {
  type Attachment,
  type Mission,
  type MissionChange,
  type MissionLayer,
  type MissionRole,
  type MissionWithGroups,
  PERMISSIONS,
  type Resource,
  type UidDetails,
} from '../model/mission.ts';
import type { Subscription, Subscriptions } from '../model/parts.ts';
import type { ServerEvent, StreamDevice, StreamNotices } from '../model/stream.ts';
import { escapeXml } from '../model/wire-text.ts';
import type { MissionSubscriptions } from '../store/mission-subscriptions.ts';

/** `<MissionChange>…</MissionChange>`: everything is an element, except what is said of a uid. */
export function contentElement(change: MissionChange): string {
  const { contentUid, contentHash, resource, details } = change;
  const inside = [
    resource === null && contentHash !== null
      ? element('contentResource', element('hash', escapeXml(contentHash)))
      : '',
    resource === null ? '' : resourceElement(resource),
    contentUid === null ? '' : element('contentUid', escapeXml(contentUid)),
    element('creatorUid', escapeXml(change.creatorUid)),
    details === null || details === undefined ? '' : detailsElement(details),
    change.attachment === undefined ? '' : attachmentElement(change.attachment),
    element('isFederatedChange', 'false'),
    element('missionGuid', change.missionGuid),
    element('missionName', escapeXml(change.missionName)),
    element('timestamp', change.timestamp.toISOString()),
    element('type', change.type),
  ];
  return element('MissionChange', inside.join(''));
}

function resourceElement(resource: Resource): string {
  const members: [string, string][] = [
    ['creatorUid', resource.creatorUid],
    ['expiration', String(resource.expiration)],
    ['filename', resource.filename],
    ['hash', resource.hash],
    ...resource.keywords.map((keyword): [string, string] => ['keywords', keyword]),
    ['mimeType', resource.mimeType],
    ['name', resource.name],
    ['size', String(resource.sizeBytes)],
    ['submissionTime', resource.submissionTime.toISOString()],
    ['submitter', resource.submitter],
    ['tool', resource.tool],
    ['uid', resource.uid],
  ];
  return element('contentResource', members.map(([name, text]) => element(name, escapeXml(text))).join(''));
}

function detailsElement({ type, callsign, iconsetPath, color, lat, lon }: UidDetails): string {
  const attributes = Object.entries({ type, callsign, iconsetPath, color })
    .filter((pair): pair is [string, string] => pair[1] !== null)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`);
  const location = lat === null || lon === null ? '' : `<location lat="${lat}" lon="${lon}"/>`;
  return `<details${attributes.join('')}>${location}</details>`;
}

function attachmentElement({ kind, uid, body }: Attachment): string {
  const members = Object.entries<unknown>({ ...body, uid }).flatMap(([name, value]) =>
    ['string', 'number', 'boolean'].includes(typeof value) ? [element(name, escapeXml(String(value)))] : [],
  );
  return element(kind, members.join(''));
}

function layerElement({ uid, name, type, parentUid }: MissionLayer): string {
  const members = Object.entries({ name, parentUid, type, uid });
  const inside = members.map(([member, value]) => (value === null ? '' : element(member, escapeXml(value))));
  return element('missionLayer', inside.join(''));
}

function roleElement(role: MissionRole): string {
  const permissions = PERMISSIONS[role].map((each) => element('permissions', each)).join('');
  return `<role type="${role}">${permissions}</role>`;
}

function element(name: string, inside: string): string {
  return `<${name}>${inside}</${name}>`;
}

type Named = Pick<Mission, 'name' | 'guid' | 'tool'>;

/** Nothing here throws or waits; nobody hears of it while there is no stream. */
export interface Announce {
  created(mission: Named, places: readonly number[], authorUid: string): void;
  deleted(mission: Named, places: readonly number[], authorUid: string): void;
  /** Contents came or went. */
  contents(
    mission: Named,
    devices: readonly StreamDevice[],
    changes: readonly MissionChange[],
    authorUid: string,
  ): void;
  /** Metadata are name, description, groups and the like. */
  changed(
    what: 'metadata' | 'keywords' | 'log',
    mission: Named,
    devices: readonly StreamDevice[],
    authorUid: string,
  ): void;
  layers(mission: Named, devices: readonly StreamDevice[], layers: readonly MissionLayer[], authorUid: string): void;
  invited(
    mission: Named,
    devices: readonly StreamDevice[],
    invitation: { token: string; role: MissionRole },
    authorUid: string,
  ): void;
  /** An event that came by the API. */
  sent(devices: readonly StreamDevice[], event: ServerEvent): void;
  /** As an invitation, as a release sends it. */
  role(mission: Named, devices: readonly StreamDevice[], role: MissionRole, authorUid: string): void;
}

const CHANGE_NOTICES = { metadata: 't-x-m-c-m', keywords: 't-x-m-c-k', log: 't-x-m-c-l' } as const;
const STALE_MS = 20_000;
/** Changes in one event: an event of a thousand would be too large for some devices. */
const CHANGES_AT_ONCE = 50;

/** `notices` is asked each time: the stream is made after the missions. */
export function announce(notices: () => StreamNotices | undefined): Announce {
  function toDevices(devices: readonly StreamDevice[], event: ServerEvent): void {
    if (devices.length > 0) notices()?.toDevices(devices, event);
  }

  return {
    created: (mission, places, authorUid) =>
      notices()?.toPlaces(places, missionEvent('t-x-m-n', 'CREATE', mission, authorUid), authorUid),
    deleted: (mission, places, authorUid) =>
      notices()?.toPlaces(places, missionEvent('t-x-m-d', 'DELETE', mission, authorUid), authorUid),
    contents(mission, devices, changes, authorUid) {
      for (let at = 0; at < changes.length; at += CHANGES_AT_ONCE) {
        const inside = changes
          .slice(at, at + CHANGES_AT_ONCE)
          .map(contentElement)
          .join('');
        const all = `<MissionChanges>${inside}</MissionChanges>`;
        const type = changes[at]?.attachment?.kind === 'externalData' ? 't-x-m-c-e' : 't-x-m-c';
        toDevices(devices, missionEvent(type, 'CHANGE', mission, authorUid, all));
      }
    },
    changed: (what, mission, devices, authorUid) =>
      toDevices(devices, missionEvent(CHANGE_NOTICES[what], 'CHANGE', mission, authorUid)),
    layers(mission, devices, layers, authorUid) {
      for (const layer of layers.slice(0, CHANGES_AT_ONCE))
        toDevices(devices, missionEvent('t-x-m-c-h', 'CHANGE', mission, authorUid, layerElement(layer)));
    },
    invited(mission, devices, { token, role }, authorUid) {
      toDevices(devices, missionEvent('t-x-m-i', 'INVITE', mission, authorUid, roleElement(role), token));
    },
    sent: toDevices,
    role(mission, devices, role, authorUid) {
      toDevices(devices, missionEvent('t-x-m-r', 'INVITE', mission, authorUid, roleElement(role)));
    },
  };
}

function missionEvent(
  type: string,
  says: string,
  mission: Named,
  authorUid: string,
  inside = '',
  token = '',
): ServerEvent {
  const attributes = [
    ['type', says],
    ['tool', mission.tool],
    ['name', mission.name],
    ['guid', mission.guid],
    ...(authorUid === '' ? [] : [['authorUid', authorUid]]),
    ...(token === '' ? [] : [['token', token]]),
  ].map(([name, value = '']) => ` ${name}="${escapeXml(value)}"`);
  const detail = `<mission${attributes.join('')}>${inside}</mission>`;
  return { uid: randomUUID(), type, how: 'h-g-i-g-o', staleMs: STALE_MS, detail };
}

/** Those that are on the stream right now. */
export type Audience = (mission: Pick<MissionWithGroups, 'id' | 'groups'>) => Promise<Subscription[]>;

/**
 * Which devices hear of a mission: those that are subscribed, by the person who subscribed them, as
 * long as that person receives from one of its groups. Whoever gives the uid of another device is
 * not taken for it.
 */
export function audience(
  subscriptions: Pick<MissionSubscriptions, 'of'>,
  connected: Pick<Subscriptions, 'list'>,
): Audience {
  return async function hearersOf({ id, groups }) {
    const names = new Set(groups.map(({ name }) => name));
    const subscribed = new Set((await subscriptions.of(id)).map((each) => keyOf(each)));
    return connected
      .list()
      .filter((each) => subscribed.has(keyOf(each)))
      .filter((each) => each.groups.some(({ name, direction }) => direction === 'OUT' && names.has(name)));
  };
}

function keyOf({ clientUid, username }: { clientUid: string; username: string }): string {
  return `${nameKey(username)}\n${clientUid}`;
}
