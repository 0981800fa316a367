-- Whether an answer has the buttons that ask for a rating, where not all have them.
CREATE TABLE rating_requests (
  turn TEXT PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
  seq INTEGER NOT NULL,
  asked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- The last few of a place are read at every answer there.
CREATE INDEX rating_requests_by_place ON rating_requests (connector, account, channel, seq, asked);
