-- Which password of the settings an account was given last, as a salted scrypt digest.
CREATE TABLE applied_password (
  username text PRIMARY KEY,
  salt bytea NOT NULL,
  digest bytea NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
