-- The tables of the core as a TAK Server release has them, as far as the embedded core uses them. Points are PostgreSQL's own
-- (x = longitude): there is no PostGIS here.

-- Certificates issued by enrollment.
CREATE TABLE certificate (
  id serial PRIMARY KEY,
  creator_dn text,
  subject_dn text NOT NULL,
  user_dn text NOT NULL,
  issuance_date timestamptz(3),
  effective_date timestamptz(3),
  expiration_date timestamptz(3) NOT NULL,
  revocation_date timestamptz(3),
  certificate text,
  hash text,
  client_uid text,
  token text
);
CREATE INDEX certificate_subject_dn_idx ON certificate (subject_dn);
CREATE INDEX certificate_hash_idx ON certificate (hash);
CREATE INDEX certificate_user_dn_idx ON certificate (user_dn);

-- Groups and the place of each in the vectors of the events.
CREATE TABLE group_type_pl (
  id int PRIMARY KEY,
  group_type text NOT NULL
);
INSERT INTO group_type_pl (id, group_type) VALUES (0, 'LDAP'), (1, 'SYSTEM');
CREATE SEQUENCE group_bitpos_sequence START WITH 2;
CREATE TABLE groups (
  id serial PRIMARY KEY,
  name text NOT NULL UNIQUE,
  bitpos int NOT NULL UNIQUE,
  create_ts timestamptz(3) NOT NULL DEFAULT now(),
  type int NOT NULL REFERENCES group_type_pl (id)
);
INSERT INTO groups (name, bitpos, type) VALUES ('__ANON__', nextval('group_bitpos_sequence'), 1);
-- Which of their groups people have switched on or off.
CREATE TABLE active_group_cache (
  id serial PRIMARY KEY,
  username text NOT NULL,
  groupname text NOT NULL,
  direction text NOT NULL,
  enabled boolean NOT NULL,
  UNIQUE (username, groupname, direction)
);

-- Clients that were ever on the stream, and when they came and went.
CREATE TABLE connection_event_type (
  id int PRIMARY KEY,
  event_name text NOT NULL
);
INSERT INTO connection_event_type (id, event_name) VALUES (1, 'Connected'), (2, 'Disconnected');
CREATE TABLE client_endpoint (
  id serial PRIMARY KEY,
  callsign text,
  uid text,
  username text,
  team text,
  role text,
  UNIQUE (callsign, uid, username, team, role)
);
CREATE TABLE client_endpoint_event (
  id serial PRIMARY KEY,
  client_endpoint_id int NOT NULL REFERENCES client_endpoint (id),
  connection_event_type_id int NOT NULL REFERENCES connection_event_type (id),
  created_ts timestamptz(3) NOT NULL DEFAULT now(),
  client_version text,
  groups bit varying(32768)
);
CREATE INDEX client_endpoint_event_endpoint_idx ON client_endpoint_event (client_endpoint_id, id DESC);

-- Events. The ids of both tables come from one sequence.
CREATE SEQUENCE cot_router_seq START WITH 101;
CREATE TABLE cot_router (
  id bigint PRIMARY KEY DEFAULT nextval('cot_router_seq'),
  uid varchar NOT NULL,
  cot_type varchar,
  access varchar,
  qos varchar,
  opex varchar,
  start timestamptz(3),
  "time" timestamptz(3),
  stale timestamptz(3),
  how varchar,
  point_hae numeric,
  point_ce numeric,
  point_le numeric,
  detail text,
  servertime timestamptz(3) DEFAULT now(),
  servertime_hour timestamptz(3) DEFAULT date_trunc('hour', now()),
  event_pt point,
  groups bit varying(32768),
  caveat varchar,
  releaseableto varchar
);
CREATE TABLE cot_image (
  id serial PRIMARY KEY,
  image bytea,
  cot_id bigint REFERENCES cot_router (id)
);
