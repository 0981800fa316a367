-- What the reward model says, with how good it is: of one base model, and only until anybody is forgotten.
CREATE TABLE predicted (
  model TEXT NOT NULL PRIMARY KEY,
  at REAL NOT NULL,
  upto INTEGER NOT NULL,
  figures TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE predictions (
  turn TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  chance REAL NOT NULL,
  good INTEGER,
  odd INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
