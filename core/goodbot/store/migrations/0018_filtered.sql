-- What filters keep out of trainings is set aside, too; of run 0, since a filter is asked before a run begins.
CREATE TABLE set_aside_after (
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  model TEXT NOT NULL,
  run INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('nan', 'oom', 'filter')),
  reason TEXT NOT NULL, settings TEXT NOT NULL, since REAL NOT NULL,
  PRIMARY KEY (turn, model)
) STRICT, WITHOUT ROWID;
INSERT INTO set_aside_after SELECT turn, model, run, kind, reason, settings, since FROM set_aside;
DROP TABLE set_aside;
ALTER TABLE set_aside_after RENAME TO set_aside;
