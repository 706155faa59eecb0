-- What the alert engine remembers of each module; `version` counts its changes.
CREATE TABLE alert_state (
  module text PRIMARY KEY,
  state jsonb NOT NULL,
  version bigint NOT NULL
);

-- Alerts: those that wait to be sent, under a lease while somebody sends them, and the history.
CREATE TABLE alert (
  id uuid PRIMARY KEY,
  module text NOT NULL,
  level text NOT NULL CHECK (level IN ('note', 'warning', 'critical')),
  message text NOT NULL,
  details jsonb NOT NULL,
  since timestamptz NOT NULL,
  raised_at timestamptz NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'sent', 'suppressed', 'failed')),
  reason text,
  sent_at timestamptz,
  attempts int NOT NULL,
  next_attempt_at timestamptz,
  deliveries jsonb NOT NULL,
  runner text,
  lease_until timestamptz
);
CREATE INDEX alert_raised_at ON alert (raised_at DESC, id);
CREATE INDEX alert_pending ON alert (next_attempt_at) WHERE state = 'pending';
CREATE INDEX alert_failed ON alert (raised_at) WHERE state = 'failed';
CREATE INDEX alert_sent ON alert (sent_at) WHERE state = 'sent';
CREATE INDEX alert_suppressed ON alert (raised_at) WHERE state = 'suppressed';
