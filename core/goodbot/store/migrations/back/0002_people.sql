-- Back to what the release before can open. What it has no place for is given up: grants by
-- pairing, links, codes, quarantines (their labels stay away until somebody rates again).
-- It knows no reasons: what a receipt says are its words.
UPDATE events SET receipt = worded(receipt) WHERE json_extract(receipt, '$.r') IS NOT NULL;
-- And of nobody what language they read.
UPDATE inbox SET payload = json_remove(payload, '$.user.language') WHERE payload <> '';
UPDATE inbox SET receipt = worded(receipt) WHERE json_extract(receipt, '$.r') IS NOT NULL;
UPDATE runs SET why = sentences(why), reason = sentences(reason);
DROP TABLE grants;
DROP TABLE codes;
-- A linked person's label belongs to the account that gave it.
UPDATE OR REPLACE labels SET rater = (SELECT e.rater FROM events e WHERE e.seq = labels.event_seq)
  WHERE rater IN (SELECT identity FROM links);
DROP TABLE links;
DROP TABLE quarantines;
DROP TABLE canaries;
DROP TABLE pairs;
DROP TABLE comparisons;
DROP TABLE traces;
DROP INDEX turns_unrated;
DROP TABLE aliases;
DROP TABLE retries;
ALTER TABLE messages DROP COLUMN position;
DROP INDEX audit_by_actor;
DROP INDEX turns_by_talker;
DROP INDEX events_by_rater;
DROP INDEX labels_by_rater;
DELETE FROM channels WHERE off_at IS NOT NULL;
ALTER TABLE channels DROP COLUMN noticed_at;
ALTER TABLE channels DROP COLUMN off_at;
ALTER TABLE turns DROP COLUMN context;
ALTER TABLE run_items DROP COLUMN weight;
ALTER TABLE labels DROP COLUMN stars;
DROP TABLE set_aside;
ALTER TABLE runs DROP COLUMN progress;
ALTER TABLE run_items DROP COLUMN position;
ALTER TABLE adapters DROP COLUMN erased_at;
ALTER TABLE adapters DROP COLUMN pinned_at;
ALTER TABLE adapters DROP COLUMN waits;
ALTER TABLE pointers RENAME TO pointers_after;
CREATE TABLE pointers (
  scope TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, updated_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pointers VALUES ('default', 0, 0);
-- It knew one pointer for all models: the one that was moved last.
INSERT OR REPLACE INTO pointers
  SELECT scope, version, max(updated_at) FROM pointers_after GROUP BY scope;
DROP TABLE pointers_after;
-- It had one switch for all models.
UPDATE OR REPLACE switches SET name = 'retrain' WHERE name LIKE 'retrain %';
UPDATE turns SET rated = 1 WHERE rated = 2;
-- Its Telegram cursor was OFFSET TIME, without the account before it.
UPDATE cursors SET cursor = substr(cursor, instr(cursor, ' ') + 1)
  WHERE connector = 'telegram' AND cursor LIKE '% % %';
DROP INDEX turns_claimable;
CREATE INDEX turns_claimable ON turns (scope, model) WHERE rated = 1 AND spent IS NULL;
DROP TRIGGER IF EXISTS label_added; -- 0003 has dropped them
DROP TRIGGER IF EXISTS label_removed;
CREATE TRIGGER label_added AFTER INSERT ON labels BEGIN
  UPDATE turns SET rated = 1 WHERE id = NEW.turn AND rated = 0;
END;
CREATE TRIGGER label_removed AFTER DELETE ON labels BEGIN
  UPDATE turns SET rated = EXISTS (SELECT 1 FROM labels WHERE turn = OLD.turn) WHERE id = OLD.turn;
END;
DROP TRIGGER turn_claimed;
ALTER TABLE run_items DROP COLUMN replayed;
CREATE TRIGGER turn_claimed AFTER INSERT ON run_items WHEN NEW.split = 'train' BEGIN
  UPDATE turns SET spent = NEW.run WHERE id = NEW.turn;
END;
DROP INDEX runs_replayed;
ALTER TABLE runs DROP COLUMN replay;
ALTER TABLE runs DROP COLUMN model;
-- It called the model in a directory by the directory's name alone.
UPDATE turns SET model = substr(model, 1, instr(model, '@') - 1)
  WHERE model LIKE '%@________' AND model NOT LIKE '%/%';
UPDATE adapters SET model = substr(model, 1, instr(model, '@') - 1)
  WHERE model LIKE '%@________' AND model NOT LIKE '%/%';
-- It would take what other models have written for the base model's own words.
UPDATE turns SET trainable = 0 WHERE answered_by <> '';
ALTER TABLE turns DROP COLUMN answered_by;
