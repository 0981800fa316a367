-- People: grants given by pairing or a command, beside those of the config file.
CREATE TABLE grants (
  person TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('owner', 'rater', 'talker')),
  given_by TEXT NOT NULL, since REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- One-time codes; only their hashes. `purpose` is pair, link or web (to log in to the browser),
-- `subject` a connector or a person.
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

-- Ratings received since then, up to that event, count for nothing (`rollback --since`); the fold
-- leaves them out.
CREATE TABLE quarantines (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  since REAL NOT NULL, last_event_seq INTEGER NOT NULL,
  made_by TEXT NOT NULL, made_at REAL NOT NULL
) STRICT;

-- A channel's one notice: NULL until the platform has it. A channel that was switched off stays
-- known, so that switching it on again soon is no reason for another notice.
ALTER TABLE channels ADD COLUMN noticed_at REAL;
ALTER TABLE channels ADD COLUMN off_at REAL;
UPDATE channels SET noticed_at = enabled_at;

-- Whose words are in the prompt: a JSON list of [turn, person], one an earlier exchange, oldest
-- first. Forgetting finds them by it, also when their own turn has expired.
ALTER TABLE turns ADD COLUMN context TEXT NOT NULL DEFAULT '[]';

-- Answers that were asked for in place of another one: the two are a pair. The prompt of the later
-- one holds the earlier one and what was wrong with it. When it was asked for, by the platform's
-- clock, tells which of the answers that one message has carried a rating speaks of.
CREATE TABLE retries (
  turn TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  instead_of TEXT NOT NULL, -- a turn, which may have expired
  depth INTEGER NOT NULL,   -- how many answers to the question came before it
  hint TEXT NOT NULL, asked_by TEXT NOT NULL,
  time_ms INTEGER NOT NULL, tiebreak TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX retries_by_earlier ON retries (instead_of);

-- In which order the messages of one answer were sent.
ALTER TABLE messages ADD COLUMN position INTEGER NOT NULL DEFAULT 0;

-- What the audit trail calls people who are no owners: random, so that a trail that nobody can
-- change still forgets who it speaks of once the row here is gone.
CREATE TABLE aliases (
  person TEXT NOT NULL PRIMARY KEY, alias TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_actor ON audit (actor, action, at);

-- A person's messages are found by who they are from, to be forgotten.
CREATE INDEX turns_by_talker ON turns (connector, talker);
CREATE INDEX events_by_rater ON events (rater);
-- With their order and value: the last few ratings of a person are read at every rating.
CREATE INDEX labels_by_rater ON labels (rater, event_seq, value);

-- How much an item counts in its run (the cap on one rater's share).
ALTER TABLE run_items ADD COLUMN weight REAL NOT NULL DEFAULT 1;

-- A turn that an earlier run of this base model has learnt from, repeated against forgetting.
ALTER TABLE run_items ADD COLUMN replayed INTEGER NOT NULL DEFAULT 0;

-- The stars that a rater gave beside a thumb; `value` is the thumb, or the stars without one.
ALTER TABLE labels ADD COLUMN stars REAL;

-- The order in which a run looks at its items, and how far it has come: a run that was interrupted
-- stays `running` and goes on with the same items (`store/progress.py`).
ALTER TABLE run_items ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN progress TEXT NOT NULL DEFAULT '{}';

-- Answers that no training of this model takes until somebody lets them in again: their numbers
-- break it, or it ran out of memory on them.
CREATE TABLE set_aside (
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  model TEXT NOT NULL,
  run INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('nan', 'oom')),
  reason TEXT NOT NULL, settings TEXT NOT NULL, since REAL NOT NULL,
  PRIMARY KEY (turn, model)
) STRICT, WITHOUT ROWID;

-- When the files were removed: somebody whose words they learnt from is forgotten, or newer versions
-- need the room. `pinned_at`: they stay, and while it answers no other goes live by itself.
-- `waits`: why a version that has passed its gate is not live yet; empty: it was, or need not be.
ALTER TABLE adapters ADD COLUMN erased_at REAL;
ALTER TABLE adapters ADD COLUMN pinned_at REAL;
ALTER TABLE adapters ADD COLUMN waits TEXT NOT NULL DEFAULT '';

-- Each base model has an active adapter of its own.
ALTER TABLE pointers RENAME TO pointers_before;
CREATE TABLE pointers (
  scope TEXT NOT NULL, model TEXT NOT NULL, version INTEGER NOT NULL, updated_at REAL NOT NULL,
  PRIMARY KEY (scope, model)
) STRICT, WITHOUT ROWID;
INSERT INTO pointers SELECT p.scope, a.model, p.version, p.updated_at
  FROM pointers_before p JOIN adapters a ON a.version = p.version;
DROP TABLE pointers_before;

-- The base model that a run trains, and whether answers of another one are replayed on it.
ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN replay INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET model = coalesce(
  (SELECT a.model FROM adapters a WHERE a.run = runs.id),
  (SELECT t.model FROM run_items i JOIN turns t ON t.id = i.turn WHERE i.run = runs.id LIMIT 1), '');
CREATE INDEX runs_replayed ON runs (scope, model) WHERE replay = 1;

-- A run uses up the answers of its own base model; what is replayed stays what it was.
DROP TRIGGER turn_claimed;
CREATE TRIGGER turn_claimed AFTER INSERT ON run_items
WHEN NEW.split = 'train' AND NOT NEW.replayed BEGIN
  UPDATE turns SET spent = NEW.run
    WHERE id = NEW.turn AND model = (SELECT model FROM runs WHERE id = NEW.run);
END;

-- turns.rated: 1 its labels say something, 2 they balance out. What the default reward policy
-- trains nothing on is not counted; what is claimed, the configured policy decides.
DROP TRIGGER label_added;
DROP TRIGGER label_removed;
CREATE TRIGGER label_added AFTER INSERT ON labels BEGIN
  UPDATE turns SET rated = now.rated FROM
    (SELECT iif(sum((value > 0) - (value < 0)) = 0, 2, 1) AS rated FROM labels WHERE turn = NEW.turn) AS now
    WHERE turns.id = NEW.turn AND turns.rated <> now.rated;
END;
CREATE TRIGGER label_removed AFTER DELETE ON labels BEGIN
  UPDATE turns SET rated = now.rated FROM
    (SELECT iif(count(*) = 0, 0, iif(sum((value > 0) - (value < 0)) = 0, 2, 1)) AS rated
       FROM labels WHERE turn = OLD.turn) AS now
    WHERE turns.id = OLD.turn AND turns.rated <> now.rated;
END;
DROP INDEX turns_claimable;
CREATE INDEX turns_claimable ON turns (scope, model, rated) WHERE rated > 0 AND spent IS NULL;
UPDATE turns SET rated = 2 WHERE rated = 1
  AND (SELECT sum((value > 0) - (value < 0)) FROM labels WHERE turn = turns.id) = 0;

-- Retraining is asked for of one base model: the one whose active adapter is tainted.
UPDATE OR IGNORE switches SET name = 'retrain ' ||
  (SELECT model FROM pointers ORDER BY updated_at DESC LIMIT 1) WHERE name = 'retrain';
DELETE FROM switches WHERE name = 'retrain';

-- Whether owners find a new version better than the one before, asked blind after its round
-- (`goodbot/learning/evaluation`). `held`: it goes live only once that is decided. At most one is open.
CREATE TABLE comparisons (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL, model TEXT NOT NULL,
  run INTEGER NOT NULL, old INTEGER NOT NULL, new INTEGER NOT NULL,
  held INTEGER NOT NULL,
  seed INTEGER NOT NULL, -- decides which of each pair is called A
  state TEXT NOT NULL CHECK (state IN ('preparing', 'asking', 'passed', 'lost', 'superseded')),
  opened_at REAL NOT NULL, closed_at REAL
) STRICT;
CREATE UNIQUE INDEX comparisons_open ON comparisons (scope, model)
  WHERE state IN ('preparing', 'asking');

-- One prompt of an owner's (that of `turn`), answered by both versions at one seed, and the choice.
CREATE TABLE pairs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  comparison INTEGER NOT NULL REFERENCES comparisons (id) ON DELETE CASCADE,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  owner TEXT NOT NULL, -- whom it is asked, connector:id
  temperature REAL NOT NULL, seed INTEGER NOT NULL,
  prompt_tokens BLOB NOT NULL,
  old_answer TEXT NOT NULL, old_tokens BLOB NOT NULL, old_logprobs BLOB NOT NULL,
  new_answer TEXT NOT NULL, new_tokens BLOB NOT NULL, new_logprobs BLOB NOT NULL,
  choice TEXT CHECK (choice IN ('old', 'new', 'same', 'skip')),
  chosen_by TEXT, chosen_at REAL,
  UNIQUE (comparison, turn)
) STRICT;
CREATE INDEX pairs_by_turn ON pairs (turn);

-- New versions that a share of the conversations meets first (`goodbot/learning/canary.py`).
CREATE TABLE canaries (
  version INTEGER PRIMARY KEY REFERENCES adapters (version),
  scope TEXT NOT NULL, model TEXT NOT NULL,
  against INTEGER NOT NULL, -- what the others meet
  state TEXT NOT NULL CHECK (state IN ('running', 'passed', 'lost', 'failed', 'superseded')),
  reason TEXT NOT NULL,
  began_at REAL NOT NULL, ended_at REAL
) STRICT;
CREATE UNIQUE INDEX canaries_running ON canaries (scope, model) WHERE state = 'running';

-- Answers that other programs have given: what wrote them, where it was no version of ours.
ALTER TABLE turns ADD COLUMN answered_by TEXT NOT NULL DEFAULT '';

-- What an agent was told is long, and lies before these columns in a row: whoever counts and whoever
-- deletes must not have to read it. Whose consent is missing is told from the names alone.
DROP INDEX turns_claimable;
CREATE INDEX turns_claimable ON turns
  (scope, model, channel_kind, connector || ':' || talker, rated, trainable, answered_by, spent)
  WHERE rated > 0 AND spent IS NULL;
CREATE INDEX turns_unrated ON turns (created_at) WHERE rated = 0;

-- Model calls as connectors name them (`CaptureEvent.trace`): what one and another saw of a call is one
-- turn. One row a capture; `answer` is a hash of the answer's words as that connector saw them.
CREATE TABLE traces (
  seq INTEGER PRIMARY KEY,
  trace TEXT NOT NULL,
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL, talker TEXT NOT NULL,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  answer TEXT NOT NULL
) STRICT;
CREATE INDEX traces_by_trace ON traces (trace);
CREATE INDEX traces_by_turn ON traces (turn);
CREATE INDEX traces_by_talker ON traces (connector, talker);

-- Whom another connector has seen in a turn was answered by it, too.
CREATE TRIGGER trace_answered AFTER INSERT ON traces BEGIN
  INSERT OR IGNORE INTO talkers
    SELECT scope, NEW.connector || ':' || NEW.talker FROM turns WHERE id = NEW.turn;
END;
