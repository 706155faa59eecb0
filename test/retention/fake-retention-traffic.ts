// Ninety days of synthetic traffic until AT, as SQL for the tables of the embedded core and for those of a release: every
// exemption is in it, and a row at the very moment of each of LIMITS, which is therefore kept.

import type { RetentionLimits } from '@holdfast/kit/retention';

export const AT = '2026-06-01T00:00:00.000Z';
export const daysBefore = (days: number): string => new Date(Date.parse(AT) - days * 86_400_000).toISOString();
export const EXEMPT = ['keep', 'in "court"'];

export const LIMITS = {
  cot: daysBefore(30),
  geochat: daysBefore(20),
  files: daysBefore(30),
  missionpackages: daysBefore(15),
  missions: daysBefore(45),
} satisfies RetentionLimits;

const at = (step: string): string => `'${AT}'::timestamptz - interval '90 days' + ${step}`;

export const TRAFFIC = `
INSERT INTO cot_router (id, uid, cot_type, how, point_hae, detail, servertime)
SELECT n, 'UID-' || n % 40,
  CASE WHEN n % 25 = 7 OR n = 14000 THEN 'b-t-f' WHEN n % 25 = 8 THEN 'b-t-f-d' WHEN n % 25 = 9 THEN NULL ELSE 'a-f-G-U-C' END,
  'm-g', 12.5, '<detail><contact callsign="EAGLE ' || n || '"/></detail>',
  CASE WHEN n % 1000 = 999 THEN NULL ELSE ${at("n * interval '432 s'")} END
FROM generate_series(1, 18000) n;
INSERT INTO cot_router_chat (id, uid, cot_type, detail, servertime, chat_room)
SELECT 100000 + n, 'GeoChat.' || n, 'b-t-f', '<detail/>',
  CASE WHEN n % 100 = 99 THEN NULL ELSE ${at("n * interval '4320 s'")} END, 'All Chat Rooms'
FROM generate_series(1, 1800) n;
INSERT INTO resource (id, data, name, keywords, submissiontime, hash)
SELECT n, decode(repeat(md5(n::text), n), 'hex'), 'file ' || n,
  (ARRAY[NULL, '{}', '{missionpackage}', '{keep}', '{missionpackage,keep}', '{"in \\"court\\"",photo}', '{NULL,photo}'])[1 + n % 9]::varchar[],
  CASE WHEN n % 50 = 49 THEN NULL ELSE ${at("n * interval '25920 s'")} END,
  CASE WHEN n % 60 = 59 THEN NULL ELSE md5((n % 280)::text) END
FROM generate_series(1, 300) n;
INSERT INTO mission (id, name, create_time, invite_only) VALUES
  (1, 'exchecktemplates', '2020-01-01', false), (2, 'citrap', '2020-01-01', false),
  (11, 'old', '${daysBefore(60)}', false), (12, 'old too', '${daysBefore(50)}', false),
  (13, 'young', '${daysBefore(5)}', false), (14, 'invited', '${daysBefore(60)}', true),
  (15, 'at the limit', '${daysBefore(45)}', false);
INSERT INTO mission_uid (mission_id, uid) VALUES
  (11, 'UID-1'), (11, 'UID-2'), (12, 'UID-2'), (12, 'UID-3'), (12, 'UID-7'), (13, 'UID-3'), (13, 'UID-4'), (14, 'UID-5'),
  (15, 'UID-6'), (1, 'UID-8'), (13, 'a uid without events');
INSERT INTO mission_resource (mission_id, resource_id, resource_hash)
SELECT mission, file, md5((file % 280)::text)
FROM (VALUES (11, 10), (11, 20), (12, 20), (12, 40), (13, 20), (13, 30), (14, 50), (15, 60), (12, 295), (13, 999)) held (mission, file);
ANALYZE`;
