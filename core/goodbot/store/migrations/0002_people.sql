-- People: grants given by pairing or a command, beside those of the config file.
CREATE TABLE grants (
  person TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('owner', 'rater', 'talker')),
  given_by TEXT NOT NULL, since REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- One-time codes; only their hashes. `purpose` is pair or link, `subject` a connector or a person.
CREATE TABLE codes (
  purpose TEXT NOT NULL, subject TEXT NOT NULL,
  hash TEXT NOT NULL, role TEXT NOT NULL, expires_at REAL NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (purpose, subject)
) STRICT, WITHOUT ROWID;

-- Several accounts of one person: they have one vote, under `identity`.
CREATE TABLE links (
  person TEXT NOT NULL PRIMARY KEY, identity TEXT NOT NULL, since REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_identity ON links (identity);

-- Ratings received in such a span count for nothing (`rollback --since`); the fold leaves them out.
CREATE TABLE quarantines (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  since REAL NOT NULL, until REAL NOT NULL,
  made_by TEXT NOT NULL, made_at REAL NOT NULL
) STRICT;

-- A channel's one notice: NULL until the platform has it.
ALTER TABLE channels ADD COLUMN noticed_at REAL;
UPDATE channels SET noticed_at = enabled_at;

-- The turns whose words are in the prompt, oldest first, as a JSON list: forgetting finds them.
ALTER TABLE turns ADD COLUMN context TEXT NOT NULL DEFAULT '[]';

-- A person's messages are found by who they are from, to be forgotten.
CREATE INDEX turns_by_talker ON turns (connector, talker);
CREATE INDEX events_by_rater ON events (rater);
CREATE INDEX labels_by_rater ON labels (rater);

-- How much an item counts in its run (the cap on one rater's share).
ALTER TABLE run_items ADD COLUMN weight REAL NOT NULL DEFAULT 1;

-- Files removed because somebody whose words they learnt from is forgotten.
ALTER TABLE adapters ADD COLUMN erased_at REAL;

-- Each base model has an active adapter of its own.
ALTER TABLE pointers RENAME TO pointers_before;
CREATE TABLE pointers (
  scope TEXT NOT NULL, model TEXT NOT NULL, version INTEGER NOT NULL, updated_at REAL NOT NULL,
  PRIMARY KEY (scope, model)
) STRICT, WITHOUT ROWID;
INSERT INTO pointers SELECT p.scope, a.model, p.version, p.updated_at
  FROM pointers_before p JOIN adapters a ON a.version = p.version;
DROP TABLE pointers_before;
