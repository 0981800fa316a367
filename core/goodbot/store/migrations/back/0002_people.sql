-- Back to what the release before can open. What it has no place for is given up: grants by
-- pairing, links, codes, quarantines (their labels stay away until somebody rates again).
DROP TABLE grants;
DROP TABLE codes;
DROP TABLE links;
DROP TABLE quarantines;
DROP INDEX turns_by_talker;
DROP INDEX events_by_rater;
DROP INDEX labels_by_rater;
ALTER TABLE channels DROP COLUMN noticed_at;
ALTER TABLE turns DROP COLUMN context;
ALTER TABLE run_items DROP COLUMN weight;
ALTER TABLE adapters DROP COLUMN erased_at;
ALTER TABLE pointers RENAME TO pointers_after;
CREATE TABLE pointers (
  scope TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, updated_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pointers VALUES ('default', 0, 0);
-- It knew one pointer for all models: the one that was moved last.
INSERT OR REPLACE INTO pointers
  SELECT scope, version, max(updated_at) FROM pointers_after GROUP BY scope;
DROP TABLE pointers_after;
