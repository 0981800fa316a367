-- The append-only ledger: the only truth about ratings. `turn` is NULL while the answer that it
-- speaks of is not known yet (a reaction can overtake our own record of the sent message).
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  connector TEXT NOT NULL, account TEXT NOT NULL, event_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('rate', 'retract', 'comment', 'better', 'outcome', 'judge')),
  turn TEXT REFERENCES turns (id) ON DELETE CASCADE,
  rater TEXT NOT NULL,
  channel TEXT NOT NULL, message TEXT NOT NULL,
  source TEXT NOT NULL, value REAL CHECK (value BETWEEN -1 AND 1),
  retracts TEXT NOT NULL, text TEXT NOT NULL,
  time_ms INTEGER NOT NULL, tiebreak TEXT NOT NULL,
  received_at REAL NOT NULL,
  receipt TEXT NOT NULL,
  UNIQUE (connector, account, event_id)
) STRICT;
CREATE INDEX events_by_turn ON events (turn, rater);
CREATE INDEX events_unresolved ON events (connector, account, channel, message) WHERE turn IS NULL;

-- Messages and commands on their way through; rows stay for deduplication, their payload does not.
CREATE TABLE inbox (
  connector TEXT NOT NULL, account TEXT NOT NULL, event_id TEXT NOT NULL,
  payload TEXT NOT NULL, receipt TEXT NOT NULL, received_at REAL NOT NULL,
  PRIMARY KEY (connector, account, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_open ON inbox (received_at) WHERE payload <> '';
CREATE INDEX inbox_done ON inbox (received_at) WHERE payload = '';

-- What a connector asked us to keep. The cursor is committed together with its events.
CREATE TABLE cursors (
  connector TEXT NOT NULL, cursor TEXT NOT NULL, PRIMARY KEY (connector)
) STRICT, WITHOUT ROWID;
CREATE TABLE connector_values (
  connector TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (connector, key)
) STRICT, WITHOUT ROWID;

-- One answer each. Prompt and response live here and nowhere else.
CREATE TABLE turns (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
  channel_kind TEXT NOT NULL, thread TEXT NOT NULL,
  talker TEXT NOT NULL,
  messages TEXT NOT NULL, response TEXT NOT NULL,
  prompt_tokens BLOB NOT NULL, tokens BLOB NOT NULL, logprobs BLOB NOT NULL,
  temperature REAL NOT NULL, model TEXT NOT NULL, version INTEGER NOT NULL,
  scope TEXT NOT NULL, kind TEXT NOT NULL, origin TEXT NOT NULL,
  trainable INTEGER NOT NULL,
  created_at REAL NOT NULL,
  -- Derived, kept by the triggers below, so that what may be claimed is counted without a scan:
  rated INTEGER NOT NULL DEFAULT 0, -- it has a label
  spent INTEGER                     -- the run that trains or has trained on it
) STRICT;
CREATE INDEX turns_claimable ON turns (scope, model) WHERE rated = 1 AND spent IS NULL;
CREATE INDEX turns_spent ON turns (spent) WHERE spent IS NOT NULL;
CREATE INDEX turns_by_place ON turns (connector, account, channel, thread, seq);
CREATE INDEX turns_by_age ON turns (created_at);

-- The platform messages that carry a turn's answer.
CREATE TABLE messages (
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL, message TEXT NOT NULL,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  PRIMARY KEY (connector, account, channel, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_turn ON messages (turn);

-- Derived from `events` by the fold; can be rebuilt at any time.
CREATE TABLE labels (
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  rater TEXT NOT NULL,
  value REAL NOT NULL, event_id TEXT NOT NULL, event_seq INTEGER NOT NULL,
  PRIMARY KEY (turn, rater)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN
    ('running', 'activated', 'refused', 'failed', 'superseded', 'released')),
  parent INTEGER NOT NULL,
  why TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  backend TEXT NOT NULL, settings TEXT NOT NULL,
  metrics TEXT NOT NULL DEFAULT '{}',
  last_event_seq INTEGER NOT NULL,
  started_at REAL NOT NULL, finished_at REAL
) STRICT;
CREATE UNIQUE INDEX runs_single_flight ON runs (scope) WHERE state = 'running';

-- What a run claimed. `labels` is the exact set of labels that made `reward`.
CREATE TABLE run_items (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  split TEXT NOT NULL CHECK (split IN ('train', 'held_out')),
  reward REAL NOT NULL, labels TEXT NOT NULL,
  PRIMARY KEY (run, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_items_by_turn ON run_items (turn);

CREATE TABLE adapters (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL, parent INTEGER NOT NULL, run INTEGER REFERENCES runs (id),
  directory TEXT NOT NULL UNIQUE, sha256 TEXT NOT NULL, model TEXT NOT NULL,
  tainted TEXT NOT NULL DEFAULT '',
  baseline TEXT NOT NULL, metrics TEXT NOT NULL,
  created_at REAL NOT NULL
) STRICT;

-- One active adapter a scope; 0 is the base model. Moved last, by compare-and-set.
CREATE TABLE pointers (
  scope TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, updated_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pointers VALUES ('default', 0, 0);

-- Switches that outlive a restart: paused, off, retrain.
CREATE TABLE switches (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE channels (
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
  enabled_by TEXT NOT NULL, enabled_at REAL NOT NULL,
  PRIMARY KEY (connector, account, channel)
) STRICT, WITHOUT ROWID;

-- People whose private chats may train an adapter that others talk to.
CREATE TABLE shares (person TEXT NOT NULL PRIMARY KEY, since REAL NOT NULL) STRICT, WITHOUT ROWID;

-- People who were told once who teaches this bot.
CREATE TABLE told (person TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Every administrative act; each row's hash covers the one before.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;

-- Everybody who has ever been answered; kept by a trigger.
CREATE TABLE talkers (
  scope TEXT NOT NULL, person TEXT NOT NULL, PRIMARY KEY (scope, person)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER turn_answered AFTER INSERT ON turns BEGIN
  INSERT OR IGNORE INTO talkers VALUES (NEW.scope, NEW.connector || ':' || NEW.talker);
END;
CREATE TRIGGER label_added AFTER INSERT ON labels BEGIN
  UPDATE turns SET rated = 1 WHERE id = NEW.turn AND rated = 0;
END;
CREATE TRIGGER label_removed AFTER DELETE ON labels BEGIN
  UPDATE turns SET rated = EXISTS (SELECT 1 FROM labels WHERE turn = OLD.turn) WHERE id = OLD.turn;
END;
CREATE TRIGGER turn_claimed AFTER INSERT ON run_items WHEN NEW.split = 'train' BEGIN
  UPDATE turns SET spent = NEW.run WHERE id = NEW.turn;
END;
-- A run that reached a verdict has used its turns up; any other end gives them back.
CREATE TRIGGER run_let_go AFTER UPDATE OF state ON runs
WHEN NEW.state IN ('failed', 'superseded', 'released') BEGIN
  UPDATE turns SET spent = NULL WHERE spent = NEW.id;
END;
