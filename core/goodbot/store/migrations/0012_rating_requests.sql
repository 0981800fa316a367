-- Whether an answer has the buttons that ask for a rating, where not all have them.
CREATE TABLE rating_requests (
  turn TEXT PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  asked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
