-- Runs of the retention service: what each was to delete, and what it has deleted so far.

CREATE TABLE retention_run (
  id text PRIMARY KEY,
  trigger text NOT NULL,
  state text NOT NULL,
  started_at timestamptz(3) NOT NULL DEFAULT now(),
  finished_at timestamptz(3),
  limits jsonb NOT NULL,
  rows jsonb NOT NULL,
  included jsonb NOT NULL,
  expected bigint,
  bytes bigint,
  error text
);
-- One at a time.
CREATE UNIQUE INDEX retention_run_running_idx ON retention_run ((true)) WHERE state = 'running';
CREATE INDEX retention_run_started_at_idx ON retention_run (started_at DESC);

-- An image that goes is looked for here.
CREATE INDEX cot_thumbnail_cot_image_id_idx ON cot_thumbnail (cot_image_id);
