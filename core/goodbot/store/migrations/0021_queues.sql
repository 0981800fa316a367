-- Queues: answers that an owner has chosen for others to rate, and whom they are shared with.
CREATE TABLE queues (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  made_by TEXT NOT NULL,
  made_at REAL NOT NULL,
  closed_at REAL
) STRICT;
CREATE TABLE queue_answers (
  queue INTEGER NOT NULL REFERENCES queues (id) ON DELETE CASCADE,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  PRIMARY KEY (queue, turn)
) STRICT, WITHOUT ROWID;
-- What expires is taken out of them, however many there are.
CREATE INDEX queue_answers_by_turn ON queue_answers (turn);
CREATE TABLE queue_shares (
  queue INTEGER NOT NULL REFERENCES queues (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('all', 'group', 'person')),
  who TEXT NOT NULL,
  PRIMARY KEY (queue, kind, who)
) STRICT, WITHOUT ROWID;
