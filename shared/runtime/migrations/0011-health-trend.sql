-- The status and the telling figure of every health module: every five minutes for two days, one an hour for two weeks.
CREATE TABLE health_sample (
  at timestamptz(3) PRIMARY KEY,
  modules jsonb NOT NULL
);
