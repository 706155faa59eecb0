-- Certificates that Holdfast made, by the core's hash, and the names that people gave them.
CREATE TABLE certificate_made (
  hash text PRIMARY KEY,
  username text NOT NULL,
  username_key text NOT NULL,
  name text NOT NULL,
  serial text NOT NULL,
  client_uid text NOT NULL,
  issued_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL
);
CREATE INDEX certificate_made_username ON certificate_made (username_key);

-- Certificates that must be revoked, and how far the proof of it has come.
CREATE TABLE certificate_revocation (
  hash text PRIMARY KEY,
  username text NOT NULL,
  username_key text NOT NULL,
  serial text NOT NULL,
  client_uid text NOT NULL,
  issued_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  wanted_at timestamptz(3) NOT NULL,
  state text NOT NULL DEFAULT 'revoking' CHECK (state IN ('revoking', 'revoked', 'revocation_failed')),
  checked_at timestamptz(3),
  proven_at timestamptz(3),
  problem text,
  streams text CHECK (streams IN ('none', 'unverifiable'))
);
CREATE INDEX certificate_revocation_username ON certificate_revocation (username_key);
CREATE INDEX certificate_revocation_open ON certificate_revocation (wanted_at) WHERE state <> 'revoked';

-- People all of whose certificates of that time are to be revoked, until each of them stands above.
CREATE TABLE revocation_order (
  username_key text PRIMARY KEY,
  username text NOT NULL,
  wanted_at timestamptz(3) NOT NULL
);

-- Whether a throw-away certificate was refused after its revocation.
CREATE TABLE canary_run (
  at timestamptz(3) PRIMARY KEY,
  ok boolean NOT NULL,
  problem text,
  core_started_at timestamptz(3)
);

-- App passwords that were made for enrollment, and the CA they were made for.
CREATE TABLE enrollment_token (
  identifier text PRIMARY KEY,
  account_id bigint NOT NULL,
  username text NOT NULL,
  ca_fingerprint text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL
);
CREATE INDEX enrollment_token_account ON enrollment_token (account_id, created_at DESC);
