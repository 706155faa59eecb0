// The tables of a TAK Server release that retention touches, as SQL for PostgreSQL with PostGIS:
// columns, types, keys and indexes as the reference describes them.

import type { RetentionLimits } from '@holdfast/kit/retention';

const EVENT = `
  uid varchar NOT NULL, cot_type varchar, access varchar, qos varchar, opex varchar,
  start timestamptz(3), "time" timestamptz(3), stale timestamptz(3), how varchar,
  point_hae numeric, point_ce numeric, point_le numeric, detail text`;

const EVENT_INDEXES = [
  '(cot_type)',
  '("time")',
  '(uid)',
  '(cot_type, servertime)',
  '(servertime)',
  '(uid, servertime)',
  '(uid, id DESC)',
  'USING gist (event_pt)',
];

const indexes = (table: string, list: readonly string[]): string =>
  list.map((each) => `CREATE INDEX ON ${table} ${each};`).join('\n');

export const RELEASE_TABLES = `
CREATE EXTENSION postgis;
CREATE SEQUENCE cot_router_seq START WITH 101;
CREATE SEQUENCE cot_router_id_seq;
CREATE TABLE cot_router (
  id bigint PRIMARY KEY DEFAULT nextval('cot_router_id_seq'), ${EVENT},
  servertime timestamptz(3) DEFAULT now(), servertime_hour timestamptz(3) DEFAULT date_trunc('hour', now()),
  event_pt geometry(Point, 4326), groups bit varying(32768), caveat varchar, releaseableto varchar);
${indexes('cot_router', [...EVENT_INDEXES, "(servertime) WHERE cot_type <> 'b-t-f'", '(servertime_hour)'])}
CREATE TABLE cot_router_chat (
  id integer PRIMARY KEY DEFAULT nextval('cot_router_seq'), ${EVENT},
  servertime timestamptz(3), event_pt geometry(Point, 4326), groups bit varying(32768),
  sender_callsign varchar, dest_callsign varchar, dest_uid varchar, chat_content text, chat_room varchar);
${indexes('cot_router_chat', [...EVENT_INDEXES, '(dest_uid)', '(dest_uid, servertime)'])}

CREATE TABLE cot_image (id serial PRIMARY KEY, image bytea, cot_id bigint REFERENCES cot_router (id));
CREATE TABLE cot_thumbnail (
  id serial PRIMARY KEY, thumbnail bytea, cot_id bigint REFERENCES cot_router (id), cot_image_id int REFERENCES cot_image (id));
CREATE TABLE cot_link (
  id serial PRIMARY KEY, containing_event bigint REFERENCES cot_router (id), uid varchar, type varchar, relation varchar);

CREATE TABLE resource (
  id serial PRIMARY KEY, altitude numeric, data bytea, filename varchar, keywords varchar(128)[], location geometry(Point, 4326),
  mimetype varchar, name varchar(128), permissions varchar[], remarks varchar, submissiontime timestamptz(3) DEFAULT now(),
  submitter varchar, uid varchar, hash text, creatoruid varchar, tool varchar, groups bit varying(32768), expiration bigint DEFAULT -1);
${indexes('resource', ['(creatoruid)', '(hash)', '(submissiontime)'])}

CREATE TABLE role (id int PRIMARY KEY, role text NOT NULL);
INSERT INTO role VALUES (0, 'MISSION_OWNER'), (1, 'MISSION_SUBSCRIBER'), (2, 'MISSION_READONLY_SUBSCRIBER');
CREATE TABLE mission (
  id bigserial PRIMARY KEY, name varchar NOT NULL, guid uuid DEFAULT gen_random_uuid(), creatoruid varchar, create_change_id bigint,
  create_time timestamptz(3), last_edited timestamptz(3), tool varchar, groups bit varying(32768), chatroom varchar, description text,
  parent_mission_id bigint REFERENCES mission (id), password_hash varchar, default_role_id int REFERENCES role (id),
  expiration bigint DEFAULT -1, base_layer text, bbox text, bounding_polygon text, path text, classification text,
  invite_only boolean DEFAULT false);
CREATE TABLE mission_change (
  id bigserial PRIMARY KEY, mission_id bigint, mission_name varchar, mission_guid uuid, hash varchar, uid varchar,
  ts timestamptz(3), servertime timestamptz(3) DEFAULT now(), change_type int, creatoruid varchar, mission_feed_uid varchar,
  map_layer_uid varchar, remote_federated_change boolean, xml_content_for_notification text);
CREATE TABLE mission_subscription (
  id bigserial PRIMARY KEY, mission_id bigint REFERENCES mission (id), client_uid varchar, username varchar,
  create_time timestamptz(3) DEFAULT now(), uid varchar, token varchar, role_id int REFERENCES role (id),
  UNIQUE (mission_id, client_uid, username));
CREATE TABLE mission_uid (mission_id bigint REFERENCES mission (id), uid varchar, PRIMARY KEY (mission_id, uid));
CREATE TABLE mission_resource (
  mission_id bigint, resource_id int, resource_hash varchar, PRIMARY KEY (mission_id, resource_id, resource_hash));
CREATE TABLE mission_keyword (mission_id bigint REFERENCES mission (id), keyword varchar, PRIMARY KEY (mission_id, keyword));
CREATE TABLE mission_uid_keyword (mission_id bigint, uid varchar, keyword varchar, PRIMARY KEY (mission_id, uid, keyword));
CREATE TABLE mission_resource_keyword (mission_id bigint, hash varchar, keyword varchar, PRIMARY KEY (mission_id, hash, keyword));
`;

/** A run of a release with these limits, its steps in their order, as it makes its statements. */
export function releaseRun(limits: RetentionLimits, exemptKeywords: readonly string[]) {
  const exempt =
    exemptKeywords.length === 0
      ? "'{}'"
      : `ARRAY[${exemptKeywords.map((each) => `'${each.replaceAll("'", "''")}'`).join()}]`;
  /** Nothing is older than NULL. */
  const limit = (type: keyof RetentionLimits): string => (limits[type] === undefined ? 'NULL' : `'${limits[type]}'`);
  const old = `
    SELECT id FROM mission WHERE create_time < ${limit('missions')} AND name NOT IN ('exchecktemplates', 'citrap') AND invite_only = false`;
  const hanging = ['resource', 'uid', 'keyword', 'uid_keyword', 'resource_keyword', 'subscription'];
  return {
    missionFiles: `DELETE FROM resource WHERE hash IN (SELECT resource_hash FROM mission_resource WHERE mission_id IN (${old}))`,
    missionEvents: `DELETE FROM cot_router WHERE uid IN (SELECT uid FROM mission_uid WHERE mission_id IN (${old}))`,
    ...Object.fromEntries(
      hanging.map((each) => [`of ${each}`, `DELETE FROM mission_${each} WHERE mission_id IN (${old})`]),
    ),
    missions: `DELETE FROM mission WHERE id IN (${old})`,
    files: `DELETE FROM resource WHERE submissiontime < ${limit('files')}
      AND id NOT IN (SELECT resource_id FROM mission_resource) AND NOT coalesce(keywords && ${exempt}::varchar[], false)`,
    cot: `DELETE FROM cot_router WHERE servertime < ${limit('cot')} AND cot_type <> 'b-t-f' AND uid NOT IN (SELECT uid FROM mission_uid)`,
    chat: `DELETE FROM cot_router_chat WHERE servertime < ${limit('geochat')}`,
    legacyChat: `DELETE FROM cot_router WHERE cot_type = 'b-t-f' AND servertime < ${limit('geochat')}`,
  };
}
