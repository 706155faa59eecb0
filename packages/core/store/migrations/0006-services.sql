-- Video feeds, and elements that are added to the events of certain uids.

CREATE TABLE video_connection (
  id bigserial PRIMARY KEY,
  uid varchar NOT NULL UNIQUE,
  -- The person who may change it.
  submitter varchar NOT NULL,
  -- The JSON that devices see.
  body text NOT NULL,
  groups bit varying(32768) NOT NULL
);
CREATE TABLE injector (
  uid varchar NOT NULL,
  to_inject varchar NOT NULL,
  PRIMARY KEY (uid, to_inject)
);
