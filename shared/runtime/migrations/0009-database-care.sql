-- Where a job is in its work, and what it must know to go on.
ALTER TABLE ops_job
  ADD COLUMN phase text,
  ADD COLUMN phase_percent float8 CHECK (phase_percent BETWEEN 0 AND 100),
  ADD COLUMN memory jsonb;

-- How much room the core's database takes and is left on its disk: each minute for two days, each hour for two months, each day for
-- longer.
CREATE TABLE growth_sample (
  at timestamptz(3) PRIMARY KEY,
  database_bytes bigint,
  wal_bytes bigint,
  max_wal_bytes bigint,
  mounts jsonb NOT NULL
);

-- Each table of the core once a day.
CREATE TABLE growth_table (
  day date NOT NULL,
  schema_name text NOT NULL,
  table_name text NOT NULL,
  bytes bigint NOT NULL,
  rows bigint NOT NULL,
  PRIMARY KEY (day, schema_name, table_name)
);
