-- What missions have beside their contents: invitations, log entries, layers, and what else hangs on them.

CREATE TABLE mission_invitation (
  id bigserial PRIMARY KEY,
  mission_id bigint NOT NULL REFERENCES mission (id),
  -- Names it in its token.
  uid varchar NOT NULL,
  type varchar NOT NULL,
  invitee varchar NOT NULL,
  -- The people it is for, in lower case. None for a group: whoever is in it when they come.
  usernames varchar[] NOT NULL,
  creator_uid varchar NOT NULL,
  create_time timestamptz(3) NOT NULL,
  token varchar NOT NULL,
  role_id int NOT NULL REFERENCES role (id)
);
CREATE UNIQUE INDEX mission_invitation_invitee_idx ON mission_invitation (mission_id, type, lower(invitee));
CREATE INDEX mission_invitation_usernames_idx ON mission_invitation USING gin (usernames);
CREATE INDEX mission_invitation_group_idx ON mission_invitation (lower(invitee)) WHERE type = 'group';

CREATE TABLE mission_log (
  id varchar PRIMARY KEY,
  content text NOT NULL,
  creator_uid varchar NOT NULL,
  -- The person who wrote it.
  username varchar NOT NULL,
  entry_uid varchar,
  dtg timestamptz(3),
  created timestamptz(3) NOT NULL,
  servertime timestamptz(3) NOT NULL,
  content_hashes varchar[] NOT NULL,
  keywords varchar[] NOT NULL
);
CREATE TABLE mission_log_mission (
  mission_id bigint NOT NULL REFERENCES mission (id),
  mission_log_id varchar NOT NULL REFERENCES mission_log (id) ON DELETE CASCADE,
  PRIMARY KEY (mission_id, mission_log_id)
);
CREATE INDEX mission_log_mission_log_idx ON mission_log_mission (mission_log_id);

-- Folders, and what is filed in them: a row of the type ITEM has the uid or the hash of a content.
CREATE TABLE mission_layer (
  mission_id bigint NOT NULL REFERENCES mission (id),
  uid varchar NOT NULL,
  name varchar,
  type varchar NOT NULL,
  parent_uid varchar,
  -- Among those with the same parent.
  position int NOT NULL,
  PRIMARY KEY (mission_id, uid)
);

-- Feeds, external data and map layers. `body` is the JSON that devices see.
CREATE TABLE mission_attachment (
  mission_id bigint NOT NULL REFERENCES mission (id),
  kind varchar NOT NULL,
  uid varchar NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (mission_id, kind, uid)
);

CREATE INDEX mission_parent_mission_id_idx ON mission (parent_mission_id);
