// Makes CoT events of what a source of a feed answers. No
// source is trusted: every value is checked, and every text is escaped. Pure; times come from the
// caller.

'use strict';

const KNOTS_TO_METERS_PER_SECOND = 0.514444;
const FEET_TO_METERS = 0.3048;
const UNKNOWN = 9999999;
/** Of one answer: what comes after them is not read. */
const MAX_ITEMS = 5_000;
/** Of JSON: each takes far more memory than text. */
const MAX_CONTAINERS = 500_000;
/** Of a CoT event; what is kept of one is far less. */
const MAX_EVENT_LENGTH = 64 * 1024;
const MAX_TEXT = 200;
const MAX_REMARKS = 1_000;
const MAX_SHAPE_POINTS = 100;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

function numberOf(value, min, max) {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && number >= min && number <= max ? number : undefined;
}

/** One line without control characters. Empty for what is no text. */
function textOf(value, max = MAX_TEXT) {
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  return String(value)
    .slice(0, max * 2)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\uFFFE\uFFFF]+/gu, ' ')
    .trim()
    .slice(0, max)
    .toWellFormed();
}

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };
const escaped = (text) => text.replaceAll(/[&<>"']/g, (each) => ENTITIES[each]);
const CHARACTERS = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const unescaped = (text) => text.replaceAll(/&(amp|lt|gt|quot|apos);/g, (_, name) => CHARACTERS[name]);

/** Undefined without a valid position; `0, 0` is what broken receivers send. */
function positionOf(lat, lon) {
  const [y, x] = [numberOf(lat, -90, 90), numberOf(lon, -180, 180)];
  return y === undefined || x === undefined || (y === 0 && x === 0) ? undefined : { lat: y, lon: x };
}

function isWithin(area, { lat, lon }) {
  if (!area) return true;
  const { south, west, north, east } = area;
  const isBetween = west <= east ? lon >= west && lon <= east : lon >= west || lon <= east;
  return lat >= south && lat <= north && isBetween;
}

/** How long an event is valid: until three answers in a row are missing. */
function staleAfterMs({ interval_s: seconds }) {
  return Math.max(MINUTE_MS, 3_000 * seconds);
}

/** `{ uid, staleMs, lat, lon, xml }`. `movement`: `{ course, speed }` in degrees and meters per second. */
function eventOf({ uid, type, how = 'm-g', lat, lon, hae, timeMs, staleMs, callsign, remarks, movement, shape = '' }) {
  const iso = (ms) => new Date(ms).toISOString();
  const { course, speed } = movement ?? {};
  const track =
    course === undefined && speed === undefined
      ? ''
      : `<track course="${(course ?? 0).toFixed(1)}" speed="${(speed ?? 0).toFixed(1)}"/>`;
  const point = `<point lat="${lat.toFixed(6)}" lon="${lon.toFixed(6)}" hae="${(hae ?? UNKNOWN).toFixed(1)}" ce="${UNKNOWN}" le="${UNKNOWN}"/>`;
  const contact = `<contact callsign="${escaped(callsign || uid)}"/>`;
  const detail = `${contact}${track}${shape}${remarks ? `<remarks>${escaped(remarks)}</remarks>` : ''}`;
  const times = `time="${iso(timeMs)}" start="${iso(timeMs)}" stale="${iso(staleMs)}"`;
  const xml = `<event version="2.0" uid="${escaped(uid)}" type="${type}" how="${how}" ${times}>${point}<detail>${detail}</detail></event>`;
  return { uid, staleMs, lat, lon, xml };
}

/** When it was seen. Undefined if that is too long ago to show. */
function seenAt(secondsAgo, feed, nowMs) {
  const ms = 1_000 * (numberOf(secondsAgo, 0, 1e9) ?? 0);
  return ms < staleAfterMs(feed) ? nowMs - ms : undefined;
}

function aircraftType({ category, dbFlags }) {
  const body = category === 'A7' ? 'H' : category === 'B2' ? 'L' : 'F';
  const isMilitary = typeof dbFlags === 'number' && (dbFlags & 1) === 1;
  return isMilitary ? `a-u-A-M-${body}` : `a-n-A-C-${body}`;
}

const EMERGENCIES = { __proto__: null, 7500: 'hijacking', 7600: 'radio failure', 7700: 'emergency' };

/** `aircraft.json` of readsb, dump1090, tar1090, and `ac` of ADS-B Exchange. */
function adsb(answer, feed, nowMs) {
  return items(answer?.aircraft ?? answer?.ac, '"aircraft" or "ac"').flatMap((each) => {
    const hex = /^~?([0-9a-f]{6})$/i.exec(textOf(each.hex))?.[1]?.toUpperCase();
    const position = positionOf(each.lat, each.lon);
    const timeMs = seenAt(each.seen_pos ?? each.seen, feed, nowMs);
    if (hex === undefined || position === undefined || timeMs === undefined) return [];
    const feet = each.alt_baro === 'ground' ? undefined : numberOf(each.alt_geom ?? each.alt_baro, -2_000, 200_000);
    const knots = numberOf(each.gs, 0, 5_000);
    const emergency = EMERGENCIES[textOf(each.squawk)];
    const words = [textOf(each.r), textOf(each.t), each.squawk && `squawk ${textOf(each.squawk)}`, emergency];
    return eventOf({
      uid: `ICAO-${hex}`,
      type: aircraftType(each),
      ...position,
      hae: feet === undefined ? undefined : feet * FEET_TO_METERS,
      timeMs,
      staleMs: timeMs + staleAfterMs(feed),
      callsign: textOf(each.flight, 20) || textOf(each.r, 20) || hex,
      movement: {
        course: numberOf(each.track, 0, 360),
        speed: knots === undefined ? undefined : knots * KNOTS_TO_METERS_PER_SECOND,
      },
      remarks: words.filter(Boolean).join(', '),
    });
  });
}

/** By the two digits of the ship type: fishing, leisure, rescue and law, passenger, cargo, tanker. */
function shipType(value) {
  const type = numberOf(value, 0, 99) ?? 0;
  if (type === 30) return 'a-n-S-X-F';
  if (type === 36 || type === 37) return 'a-n-S-X-R';
  if (type === 51 || type === 55) return 'a-n-S-X-L';
  if (type >= 60 && type < 70) return 'a-n-S-X-M-P';
  if (type >= 70 && type < 80) return 'a-n-S-X-M-C';
  return type >= 80 && type < 90 ? 'a-n-S-X-M-O' : 'a-n-S-X';
}

/** `ships.json` of AIS-catcher. */
function ais(answer, feed, nowMs) {
  return items(answer?.ships, '"ships"').flatMap((each) => {
    const mmsi = /^\d{7,9}$/.exec(textOf(each.mmsi))?.[0];
    const position = positionOf(each.lat, each.lon);
    const timeMs = seenAt(each.last_signal, feed, nowMs);
    if (mmsi === undefined || position === undefined || timeMs === undefined) return [];
    const knots = numberOf(each.speed, 0, 102.2);
    const destination = textOf(each.destination);
    return eventOf({
      uid: `MMSI-${mmsi}`,
      type: shipType(each.shiptype),
      ...position,
      timeMs,
      staleMs: timeMs + staleAfterMs(feed),
      callsign: textOf(each.shipname, 20) || mmsi,
      movement: {
        course: numberOf(each.cog, 0, 360),
        speed: knots === undefined ? undefined : knots * KNOTS_TO_METERS_PER_SECOND,
      },
      remarks: [textOf(each.callsign), destination && `to ${destination}`].filter(Boolean).join(', '),
    });
  });
}

/** Of a GeoJSON geometry the outer ring of its first polygon. Pairs are `[lon, lat]`. */
function ringOf(geometry) {
  const { type, coordinates } = geometry ?? {};
  const ring = type === 'Polygon' ? coordinates?.[0] : type === 'MultiPolygon' ? coordinates?.[0]?.[0] : undefined;
  if (!Array.isArray(ring)) return [];
  const points = ring.map((pair) => (Array.isArray(pair) ? positionOf(pair[1], pair[0]) : undefined));
  if (points.includes(undefined)) return [];
  const step = Math.ceil(points.length / MAX_SHAPE_POINTS);
  return points.filter((_, at) => at % step === 0 || at === points.length - 1);
}

/** Signed ARGB, as ATAK writes colors. */
const COLORS = { __proto__: null, Extreme: -65536, Severe: -38400, Moderate: -256 };

/** GeoJSON of weather alerts (CAP), as api.weather.gov has it. One without an area has no place. */
function weather(answer, feed, nowMs) {
  return items(answer?.features, '"features"').flatMap(({ id, geometry, properties }) => {
    const ring = ringOf(geometry);
    const untilMs = Date.parse(properties?.ends ?? properties?.expires);
    const key = textOf(properties?.id ?? id);
    if (ring.length < 3 || key === '' || !(untilMs > nowMs) || properties?.messageType === 'Cancel') return [];
    const middle = (name) => ring.reduce((sum, point) => sum + point[name], 0) / ring.length;
    const color = COLORS[textOf(properties.severity)] ?? -16711681;
    const links = ring.map(({ lat, lon }) => `<link point="${lat.toFixed(5)},${lon.toFixed(5)}"/>`).join('');
    return eventOf({
      uid: `${feed.name}.${key}`,
      type: 'u-d-f',
      how: 'm-g',
      lat: middle('lat'),
      lon: middle('lon'),
      timeMs: nowMs,
      staleMs: Math.min(untilMs, nowMs + Math.max(staleAfterMs(feed), 10 * MINUTE_MS)),
      callsign: textOf(properties.event, 60) || 'Weather alert',
      remarks: [textOf(properties.headline, MAX_REMARKS), textOf(properties.instruction, MAX_REMARKS)]
        .filter(Boolean)
        .join(' '),
      shape: `${links}<strokeColor value="${color}"/><strokeWeight value="3.0"/>`,
    });
  });
}

/** `a.b.c` or `list.0.x`; own properties only. An empty path is the value itself. */
function at(value, path) {
  if (path === '') return value;
  let found = value;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = found[name];
  }
  return found;
}

/** Any JSON: `mapping` says where its list and the values of an item are. */
function json(answer, feed, nowMs) {
  const { items: list, uid, lat, lon, callsign, type, remarks } = feed.mapping;
  return items(at(answer, list), JSON.stringify(list)).flatMap((each) => {
    const key = textOf(at(each, uid));
    const position = positionOf(at(each, lat), at(each, lon));
    if (key === '' || position === undefined) return [];
    return eventOf({
      uid: `${feed.name}.${key}`,
      type,
      ...position,
      timeMs: nowMs,
      staleMs: nowMs + staleAfterMs(feed),
      callsign: callsign === '' ? key : textOf(at(each, callsign), 60) || key,
      remarks: remarks === '' ? '' : textOf(at(each, remarks), MAX_REMARKS),
    });
  });
}

function items(list, name) {
  if (!Array.isArray(list)) throw new Error(`the answer has no list ${name}`);
  return list.slice(0, MAX_ITEMS).filter((each) => typeof each === 'object' && each !== null);
}

function attributesOf(text, element) {
  const [, inside] = new RegExp(`<${element}\\s((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>`).exec(text) ?? [];
  const pairs = [...(inside ?? '').matchAll(/(?<![\w:-])([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)];
  return Object.fromEntries(pairs.map(([, name, one, other]) => [name, unescaped(one ?? other)]));
}

/** Positions and markers. Orders to devices, chats and deletions have other types. */
const COT_TYPES = /^(?:a-[a-z.]|b-m-p)(?:-[A-Za-z0-9.]+){0,12}$/;

/**
 * CoT events one after the other. Each is written new: type, position, times, callsign, course and
 * remarks. Its uid gets the name of the feed in front, so that it can't be that of a device.
 */
function cot(answer, feed, nowMs) {
  return (answer.match(/<event\b(?:(?!<event\b)[^])*?<\/event>/g) ?? []).slice(0, MAX_ITEMS).flatMap((text) => {
    if (text.length > MAX_EVENT_LENGTH) return [];
    const { uid, type = '', stale, how } = attributesOf(text, 'event');
    const { lat, lon, hae } = attributesOf(text, 'point');
    const position = positionOf(lat, lon);
    const staleMs = Date.parse(stale);
    if (!uid || !COT_TYPES.test(type) || position === undefined || !(staleMs > nowMs)) return [];
    const { course, speed } = attributesOf(text, 'track');
    const track = { course: numberOf(course, 0, 360), speed: numberOf(speed, 0, 20_000) };
    return eventOf({
      uid: `${feed.name}.${textOf(uid)}`,
      type,
      how: /^[hm]-[a-z](?:-[a-z]){0,4}$/.test(how ?? '') ? how : 'm-g',
      ...position,
      hae: numberOf(hae, -12_000, 1e6),
      timeMs: nowMs,
      staleMs: Math.min(staleMs, nowMs + DAY_MS),
      callsign: textOf(attributesOf(text, 'contact').callsign, 60),
      movement: track,
      remarks: textOf(unescaped(/<remarks(?:\s[^<>]*)?>([^<]*)</.exec(text)?.[1] ?? ''), MAX_REMARKS),
    });
  });
}

/** Lists and objects, at most: brackets in texts count, too. */
function containersIn(text) {
  let count = 0;
  for (const bracket of ['[', '{'])
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) count += 1;
  return count;
}

const KINDS = { adsb, ais, weather, json, cot };

/**
 * Events of an answer, each uid once, inside the area of the feed. `answer`: text. Throws what is
 * wrong with it, as a phrase.
 */
function eventsOf(feed, answer, nowMs) {
  let content = answer;
  if (feed.kind !== 'cot') {
    if (containersIn(answer) > MAX_CONTAINERS) throw new Error('the answer has too many lists and objects');
    try {
      content = JSON.parse(answer);
    } catch {
      throw new Error(`the answer is no JSON: ${JSON.stringify(textOf(answer, 60))}`);
    }
  }
  const events = new Map();
  for (const event of KINDS[feed.kind](content, feed, nowMs)) events.set(event.uid, event);
  return [...events.values()].filter((event) => isWithin(feed.area, event));
}

module.exports = { eventsOf };
