-- People and programs. The `_key` columns hold names as they are compared (see names.ts); `searched` what a search reads.
CREATE TABLE account (
  pk int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uuid uuid NOT NULL UNIQUE,
  username text NOT NULL,
  username_key text NOT NULL CONSTRAINT account_username_taken UNIQUE,
  name text NOT NULL,
  email text NOT NULL,
  email_key text NOT NULL,
  searched text NOT NULL,
  is_active boolean NOT NULL,
  path text NOT NULL,
  type text NOT NULL CHECK (type IN ('internal', 'external', 'service_account', 'internal_service_account')),
  attributes jsonb NOT NULL CHECK (jsonb_typeof(attributes) = 'object'),
  password_hash text,
  password_changed_at timestamptz,
  date_joined timestamptz NOT NULL,
  last_updated timestamptz NOT NULL,
  last_login timestamptz
);
CREATE INDEX account_username ON account (username, pk);
CREATE INDEX account_email ON account (email_key);

CREATE TABLE user_group (
  uuid uuid PRIMARY KEY,
  num_pk int GENERATED ALWAYS AS IDENTITY UNIQUE,
  name text NOT NULL,
  name_key text NOT NULL CONSTRAINT user_group_name_taken UNIQUE,
  is_superuser boolean NOT NULL,
  attributes jsonb NOT NULL CHECK (jsonb_typeof(attributes) = 'object'),
  created_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL
);

CREATE TABLE membership (
  account_pk int NOT NULL REFERENCES account ON DELETE CASCADE,
  group_uuid uuid NOT NULL REFERENCES user_group ON DELETE CASCADE,
  PRIMARY KEY (account_pk, group_uuid)
);
CREATE INDEX membership_of_group ON membership (group_uuid, account_pk);

-- API tokens and app passwords. The key is sealed and found by its digest, both under a secret that is not in here.
CREATE TABLE token (
  uuid uuid PRIMARY KEY,
  identifier text NOT NULL CONSTRAINT token_identifier_taken UNIQUE,
  account_pk int NOT NULL REFERENCES account ON DELETE CASCADE,
  intent text NOT NULL CHECK (intent IN ('api', 'app_password')),
  description text NOT NULL,
  expires timestamptz,
  expiring boolean NOT NULL,
  managed text,
  key_sealed bytea NOT NULL,
  key_digest bytea NOT NULL CONSTRAINT token_key_taken UNIQUE,
  CHECK (expires IS NOT NULL OR NOT expiring)
);
CREATE INDEX token_of_account ON token (account_pk);
CREATE INDEX token_expires ON token (expires) WHERE expiring;
