-- Long work that somebody has asked for; one of a kind at a time.
CREATE TABLE ops_job (
  id uuid PRIMARY KEY,
  kind text NOT NULL,
  state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'interrupted')),
  progress float8 NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),
  created_at timestamptz(3) NOT NULL,
  started_at timestamptz(3),
  finished_at timestamptz(3),
  eta timestamptz(3),
  log jsonb NOT NULL DEFAULT '[]',
  input jsonb NOT NULL,
  result jsonb,
  error text,
  actor text NOT NULL
);
CREATE UNIQUE INDEX ops_job_one_open ON ops_job (kind) WHERE state IN ('queued', 'running');
CREATE INDEX ops_job_created_at ON ops_job (created_at DESC);

-- Runs of retention, as the core or its log tells of them.
CREATE TABLE retention_run (
  id text PRIMARY KEY,
  source text NOT NULL CHECK (source IN ('core', 'log')),
  trigger text NOT NULL CHECK (trigger IN ('schedule', 'order')),
  state text NOT NULL CHECK (state IN ('running', 'done', 'failed', 'interrupted')),
  started_at timestamptz(3) NOT NULL,
  finished_at timestamptz(3),
  limits jsonb NOT NULL,
  rows jsonb NOT NULL,
  included jsonb NOT NULL,
  expected bigint,
  bytes bigint,
  error text
);
CREATE INDEX retention_run_started_at ON retention_run (started_at DESC);

-- Each policy and schedule that was seen in force, and since when.
CREATE TABLE retention_in_force (
  since timestamptz(3) PRIMARY KEY,
  policy jsonb NOT NULL,
  schedule text NOT NULL
);

-- Rows per day, for figures that would take too long to count.
CREATE TABLE retention_day (
  type text NOT NULL CHECK (type IN ('cot', 'geochat')),
  day date NOT NULL,
  rows bigint NOT NULL,
  counted_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (type, day)
);
