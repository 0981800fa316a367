-- Back to sentences. Those of runs are worded with all their reasons (0002).
CREATE TABLE said_before (said TEXT NOT NULL, code TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO said_before (said, code) VALUES
  ('somebody whose words or ratings it learnt from is forgotten', 'kept_forgotten'),
  ('a rating that it was trained on has changed', 'kept_changed'),
  ('a rating that it was trained on counts otherwise since two accounts are one person''s', 'kept_joined'),
  ('ratings that it was trained on do not count any more', 'kept_uncounted'),
  ('`rollback all` has withdrawn all there were', 'kept_begun_anew'),
  ('its training was refused', 'kept_run_refused'),
  ('its training failed', 'kept_run_failed'),
  ('its training was ended', 'kept_run_superseded');
UPDATE adapters SET tainted = (SELECT b.said FROM said_before b WHERE b.code = adapters.tainted)
  WHERE tainted IN (SELECT code FROM said_before);
UPDATE switches SET value = (SELECT b.said FROM said_before b WHERE b.code = switches.value)
  WHERE name LIKE 'retrain %' AND value IN (SELECT code FROM said_before);
DELETE FROM switches WHERE name LIKE 'lost %';
DROP TABLE said_before;
