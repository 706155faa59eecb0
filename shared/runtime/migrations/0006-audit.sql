-- It is made where the database is made, by somebody who may.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_audit') THEN
    RAISE EXCEPTION 'the role holdfast_audit is missing. Remedy: as a superuser of this server, CREATE ROLE holdfast_audit NOLOGIN; GRANT holdfast_audit TO %;', current_user;
  END IF;
END $$;

-- The audit log. `hash` is an HMAC over the hash before and every other column; the key is kept outside the database.
CREATE TABLE audit_record (
  seq bigint PRIMARY KEY,
  at timestamptz(3) NOT NULL,
  actor text NOT NULL,
  address text NOT NULL,
  action text NOT NULL,
  target text NOT NULL,
  phase text NOT NULL,
  result text,
  detail text NOT NULL,
  intent bigint,
  request_id text NOT NULL,
  hash text NOT NULL
);
CREATE INDEX audit_record_at ON audit_record (at);
CREATE INDEX audit_record_actor ON audit_record (actor, seq DESC);
CREATE INDEX audit_record_action ON audit_record (action, seq DESC);
CREATE INDEX audit_record_target ON audit_record (target, seq DESC);
CREATE INDEX audit_record_outcome ON audit_record (intent) WHERE intent IS NOT NULL;

-- Where the chain begins after records were pruned: the last of them, signed with the same key.
CREATE TABLE audit_checkpoint (
  seq bigint PRIMARY KEY,
  at timestamptz(3) NOT NULL,
  hash text NOT NULL,
  removed bigint NOT NULL,
  signature text NOT NULL
);

-- Appending needs no more than this role has; it is made where the database is made.
GRANT SELECT, INSERT ON audit_record TO holdfast_audit;
GRANT SELECT ON audit_checkpoint TO holdfast_audit;
