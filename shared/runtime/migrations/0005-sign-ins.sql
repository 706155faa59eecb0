-- What was signed for a person before its epoch changed is void. `username_key` is the name without regard to case.
CREATE TABLE account_epoch (
  username_key text PRIMARY KEY,
  epoch bigint NOT NULL
);

-- Sessions and API tokens, by the digest of the identifier that stands in the signed text.
CREATE TABLE session (
  id uuid PRIMARY KEY,
  digest bytea NOT NULL UNIQUE,
  username text NOT NULL,
  username_key text NOT NULL,
  epoch bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  address text NOT NULL,
  user_agent text NOT NULL
);
CREATE INDEX session_of ON session (username_key, created_at DESC, id DESC);
CREATE INDEX session_expires_at ON session (expires_at);

CREATE TABLE api_token (
  id uuid PRIMARY KEY,
  digest bytea NOT NULL UNIQUE,
  username text NOT NULL,
  username_key text NOT NULL,
  epoch bigint NOT NULL,
  name text NOT NULL,
  scope text NOT NULL CHECK (scope IN ('read', 'users', 'admin')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX api_token_of ON api_token (username_key);
CREATE INDEX api_token_created_at ON api_token (created_at DESC, id DESC);
