-- How long somebody waited for an answer: seconds from their message until all of it was there.
CREATE TABLE waits (
  turn TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  seconds REAL NOT NULL
) STRICT, WITHOUT ROWID;
-- What each version says to questions that are always the same: an owner's own, and pairs that differ in one thing.
CREATE TABLE fixed_answers (
  model TEXT NOT NULL, version INTEGER NOT NULL, question TEXT NOT NULL,
  answer TEXT NOT NULL, asked_at REAL NOT NULL,
  PRIMARY KEY (model, version, question)
) STRICT, WITHOUT ROWID;
