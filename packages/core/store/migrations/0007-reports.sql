-- Reports that devices write (CI-TRAP), as packages.

CREATE TABLE ci_trap (
  uid varchar PRIMARY KEY,
  -- The person who may change it.
  submitter varchar NOT NULL,
  -- What is shown and searched of it, as JSON.
  body text NOT NULL,
  xml text NOT NULL,
  data bytea NOT NULL,
  groups bit varying(32768) NOT NULL,
  updated timestamptz(3) NOT NULL
);
