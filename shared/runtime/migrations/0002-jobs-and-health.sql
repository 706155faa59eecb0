-- Runs of jobs. At most one run of a job is unfinished; its runner renews the lease, and whoever finds it ended takes over.
CREATE TABLE job_run (
  name text NOT NULL,
  due_at timestamptz NOT NULL,
  runner text NOT NULL,
  attempt int NOT NULL DEFAULT 1,
  claimed_at timestamptz NOT NULL DEFAULT now(),
  lease_until timestamptz NOT NULL,
  finished_at timestamptz,
  summary jsonb,
  error text,
  PRIMARY KEY (name, due_at)
);
CREATE UNIQUE INDEX job_run_unfinished ON job_run (name) WHERE finished_at IS NULL;

-- The one row that health writes to see that a write succeeds.
CREATE TABLE health_write (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  written_at timestamptz NOT NULL
);
