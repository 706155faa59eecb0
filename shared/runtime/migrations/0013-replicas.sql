-- Failed sign-ins by address, which all management processes count together. A released address
-- keeps its row, without failures, until every process has seen it.
CREATE TABLE sign_in_failures (
  address text PRIMARY KEY,
  failed_at timestamptz[] NOT NULL,
  locked_until timestamptz,
  changed_at timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_changed_at ON sign_in_failures (changed_at);

-- The newest measurement of each health module, whichever process made it.
CREATE TABLE health_result (
  module text PRIMARY KEY,
  measured_by text NOT NULL,
  published_at timestamptz NOT NULL,
  result text NOT NULL
);
