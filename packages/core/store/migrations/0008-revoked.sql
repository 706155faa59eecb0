-- Nodes of a cluster look for new revocations several times a second.
CREATE INDEX certificate_revoked_idx ON certificate (id, revocation_date) WHERE revocation_date IS NOT NULL;
