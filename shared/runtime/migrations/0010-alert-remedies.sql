-- What to do about just the findings that an alert tells of.
ALTER TABLE alert ADD COLUMN remedies jsonb NOT NULL DEFAULT '[]';
