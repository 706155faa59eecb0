// A change of the contents as XML, for the notices on the stream: everything is an element, except what is said of a uid.

import type { Resource } from '../store/resources.ts';
import type { MissionChange, UidDetails } from './mission.ts';
import { escapeXml } from '../stream/xml/escape.ts';

/** `<MissionChange>…</MissionChange>` */
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

function element(name: string, inside: string): string {
  return `<${name}>${inside}</${name}>`;
}
