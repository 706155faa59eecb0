-- Each start of the management process: which release, with which settings.
CREATE TABLE stack_start (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  started_at timestamptz NOT NULL,
  release text NOT NULL,
  settings_hash text NOT NULL
);
