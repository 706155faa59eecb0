-- Profiles that devices apply, and error logs that they send; as a TAK Server release has them.

CREATE TABLE device_profile (
  id bigserial PRIMARY KEY,
  name varchar(255) NOT NULL UNIQUE,
  groups bit varying,
  apply_on_enrollment boolean NOT NULL DEFAULT true,
  apply_on_connect boolean NOT NULL DEFAULT false,
  active boolean NOT NULL DEFAULT true,
  tool text,
  updated timestamptz(3) NOT NULL DEFAULT now()
);
CREATE TABLE device_profile_file (
  id bigserial PRIMARY KEY,
  name varchar(255) NOT NULL,
  data bytea NOT NULL,
  device_profile_id bigint NOT NULL REFERENCES device_profile (id) ON DELETE CASCADE
);
CREATE INDEX device_profile_file_profile_idx ON device_profile_file (device_profile_id);

CREATE TABLE error_logs (
  id serial PRIMARY KEY,
  uid text NOT NULL,
  callsign text NOT NULL,
  -- Whose certificate it came by; a release does not have it.
  username text NOT NULL,
  platform text NOT NULL,
  major_version text NOT NULL,
  minor_version text NOT NULL,
  filename text NOT NULL,
  contents bytea NOT NULL,
  "time" timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX error_logs_username_idx ON error_logs (username);
