-- What a judge makes of what came after an answer that nobody rated. A row an answer, so that none is judged
-- twice. `state`: it waits to be judged again (from `at` on), is judged (`value` 0 is neither), was closed because
-- nothing came after it in time, or failed. `credit_of`: it got its value from the outcome of that later answer.
CREATE TABLE judgements (
  turn TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'judged', 'closed', 'failed')),
  tries INTEGER NOT NULL DEFAULT 0,
  judge TEXT NOT NULL DEFAULT '',
  value REAL NOT NULL DEFAULT 0 CHECK (value BETWEEN -1 AND 1),
  votes TEXT NOT NULL DEFAULT '[]',
  credit_of TEXT REFERENCES turns (id) ON DELETE CASCADE,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX judgements_told ON judgements (at) WHERE value <> 0;
CREATE INDEX judgements_by_credit ON judgements (credit_of) WHERE credit_of IS NOT NULL;
