-- What the stream stores and what phones ask of it: indexes of the events, chat, files, missions; as a TAK Server release has
-- them, as far as the embedded core uses them.

-- A vector of groups has 32,768 places. Each set of groups is written here once; a row that copies it from here copies what
-- is already compressed. `places` are the positions, ascending, with commas.
CREATE TABLE group_vector (
  places text PRIMARY KEY,
  vector bit varying(32768) NOT NULL
);

CREATE INDEX cot_router_cot_type_idx ON cot_router (cot_type);
CREATE INDEX cot_router_time_idx ON cot_router ("time");
CREATE INDEX cot_router_uid_idx ON cot_router (uid);
CREATE INDEX cot_router_cot_type_servertime_idx ON cot_router (cot_type, servertime);
CREATE INDEX cot_router_servertime_idx ON cot_router (servertime);
CREATE INDEX cot_router_servertime_no_chat_idx ON cot_router (servertime) WHERE cot_type <> 'b-t-f';
CREATE INDEX cot_router_servertime_hour_idx ON cot_router (servertime_hour);
CREATE INDEX cot_router_uid_servertime_idx ON cot_router (uid, servertime);
CREATE INDEX cot_router_uid_id_idx ON cot_router (uid, id DESC);
CREATE INDEX cot_router_event_pt_idx ON cot_router USING gist (event_pt);

-- Pictures and links of events: older releases wrote them.
CREATE TABLE cot_thumbnail (
  id serial PRIMARY KEY,
  thumbnail bytea,
  cot_id bigint REFERENCES cot_router (id),
  cot_image_id int REFERENCES cot_image (id)
);
CREATE TABLE cot_link (
  id serial PRIMARY KEY,
  containing_event bigint REFERENCES cot_router (id),
  uid varchar,
  type varchar,
  relation varchar
);
CREATE INDEX cot_image_cot_id_idx ON cot_image (cot_id);
CREATE INDEX cot_thumbnail_cot_id_idx ON cot_thumbnail (cot_id);
CREATE INDEX cot_link_containing_event_idx ON cot_link (containing_event);

-- Chat. Its ids come from the sequence of the events; they are wider than those of a release, which end after 2^31 events.
CREATE TABLE cot_router_chat (
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
  servertime timestamptz(3),
  event_pt point,
  groups bit varying(32768),
  sender_callsign varchar,
  dest_callsign varchar,
  dest_uid varchar,
  chat_content text,
  chat_room varchar
);
CREATE INDEX cot_router_chat_cot_type_idx ON cot_router_chat (cot_type);
CREATE INDEX cot_router_chat_time_idx ON cot_router_chat ("time");
CREATE INDEX cot_router_chat_uid_idx ON cot_router_chat (uid);
CREATE INDEX cot_router_chat_cot_type_servertime_idx ON cot_router_chat (cot_type, servertime);
CREATE INDEX cot_router_chat_servertime_idx ON cot_router_chat (servertime);
CREATE INDEX cot_router_chat_uid_servertime_idx ON cot_router_chat (uid, servertime);
CREATE INDEX cot_router_chat_uid_id_idx ON cot_router_chat (uid, id DESC);
CREATE INDEX cot_router_chat_dest_uid_idx ON cot_router_chat (dest_uid);
CREATE INDEX cot_router_chat_dest_uid_servertime_idx ON cot_router_chat (dest_uid, servertime);
CREATE INDEX cot_router_chat_event_pt_idx ON cot_router_chat USING gist (event_pt);

-- Events that were not stored, and why: written when the database is back.
CREATE TABLE archive_loss (
  id serial PRIMARY KEY,
  began timestamptz(3) NOT NULL,
  ended timestamptz(3) NOT NULL,
  events bigint NOT NULL,
  reason text NOT NULL
);

-- Files. Their bytes are read in parts, which compressed ones cannot be.
CREATE TABLE resource (
  id serial PRIMARY KEY,
  altitude numeric,
  data bytea,
  filename varchar,
  keywords varchar(128)[],
  location point,
  mimetype varchar,
  name varchar(128),
  permissions varchar[],
  remarks varchar,
  submissiontime timestamptz(3) DEFAULT now(),
  submitter varchar,
  uid varchar,
  hash text,
  creatoruid varchar,
  tool varchar,
  groups bit varying(32768),
  expiration bigint DEFAULT -1
);
ALTER TABLE resource ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX resource_creatoruid_idx ON resource (creatoruid);
CREATE INDEX resource_hash_idx ON resource (hash);
CREATE INDEX resource_submissiontime_idx ON resource (submissiontime);
CREATE INDEX resource_uid_idx ON resource (uid);

-- Missions.
CREATE TABLE role (
  id int PRIMARY KEY,
  role text NOT NULL
);
INSERT INTO role (id, role) VALUES (0, 'MISSION_OWNER'), (1, 'MISSION_SUBSCRIBER'), (2, 'MISSION_READONLY_SUBSCRIBER');
CREATE TABLE mission (
  id bigserial PRIMARY KEY,
  name varchar NOT NULL,
  guid uuid NOT NULL DEFAULT gen_random_uuid(),
  creatoruid varchar,
  create_change_id bigint,
  create_time timestamptz(3) NOT NULL DEFAULT now(),
  last_edited timestamptz(3),
  tool varchar,
  groups bit varying(32768),
  chatroom varchar,
  description text,
  parent_mission_id bigint REFERENCES mission (id),
  password_hash varchar,
  default_role_id int REFERENCES role (id),
  expiration bigint DEFAULT -1,
  base_layer text,
  bbox text,
  bounding_polygon text,
  path text,
  classification text,
  invite_only boolean NOT NULL DEFAULT false
);
CREATE INDEX mission_name_idx ON mission (name);
CREATE INDEX mission_guid_idx ON mission (guid);
CREATE TABLE mission_change (
  id bigserial PRIMARY KEY,
  mission_id bigint,
  mission_name varchar,
  mission_guid uuid,
  hash varchar,
  uid varchar,
  ts timestamptz(3),
  servertime timestamptz(3) DEFAULT now(),
  change_type int,
  creatoruid varchar,
  mission_feed_uid varchar,
  map_layer_uid varchar,
  external_data_uid varchar,
  external_data_name varchar,
  external_data_tool varchar,
  external_data_token varchar,
  external_data_notes varchar,
  remote_federated_change boolean,
  xml_content_for_notification text
);
CREATE INDEX mission_change_mission_id_uid_idx ON mission_change (mission_id, uid, id DESC);
CREATE INDEX mission_change_mission_id_hash_idx ON mission_change (mission_id, hash, id DESC);
CREATE INDEX mission_change_mission_name_idx ON mission_change (mission_name);
CREATE INDEX mission_change_ts_idx ON mission_change (ts);
-- Which missions were deleted.
CREATE INDEX mission_change_deleted_guid_idx ON mission_change (mission_guid) WHERE change_type = 1;
CREATE INDEX mission_change_deleted_name_idx ON mission_change (mission_name) WHERE change_type = 1;
CREATE TABLE mission_subscription (
  id bigserial PRIMARY KEY,
  mission_id bigint NOT NULL REFERENCES mission (id),
  client_uid varchar NOT NULL,
  username varchar,
  create_time timestamptz(3) NOT NULL DEFAULT now(),
  uid varchar NOT NULL,
  token varchar,
  role_id int REFERENCES role (id),
  UNIQUE (mission_id, client_uid, username)
);
CREATE INDEX mission_subscription_client_uid_idx ON mission_subscription (client_uid);
CREATE TABLE mission_uid (
  mission_id bigint NOT NULL REFERENCES mission (id),
  uid varchar NOT NULL,
  PRIMARY KEY (mission_id, uid)
);
CREATE INDEX mission_uid_uid_idx ON mission_uid (uid);
CREATE TABLE mission_resource (
  mission_id bigint NOT NULL REFERENCES mission (id),
  resource_id int NOT NULL,
  resource_hash varchar NOT NULL,
  PRIMARY KEY (mission_id, resource_id, resource_hash)
);
CREATE INDEX mission_resource_resource_id_idx ON mission_resource (resource_id);
CREATE TABLE mission_keyword (
  mission_id bigint NOT NULL REFERENCES mission (id),
  keyword varchar NOT NULL,
  PRIMARY KEY (mission_id, keyword)
);
CREATE TABLE mission_uid_keyword (
  mission_id bigint NOT NULL REFERENCES mission (id),
  uid varchar NOT NULL,
  keyword varchar NOT NULL,
  PRIMARY KEY (mission_id, uid, keyword)
);
CREATE TABLE mission_resource_keyword (
  mission_id bigint NOT NULL REFERENCES mission (id),
  hash varchar NOT NULL,
  keyword varchar NOT NULL,
  PRIMARY KEY (mission_id, hash, keyword)
);
