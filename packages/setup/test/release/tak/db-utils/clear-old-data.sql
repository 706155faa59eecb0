-- Deletes what is older than a month, by hand. Made up for the tests.
DELETE FROM cot_router WHERE servertime < now() - interval '1 month';
