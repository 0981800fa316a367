-- What people want of answers, in a line each: it goes into the prompt of the next answer. `key` is whose
-- it is: a person (connector:id), a channel (a JSON list of connector, account and id), or nobody's.
-- `rule`: the chip whose wording it is, empty where the words are somebody's own. `edited`: by its person.
CREATE TABLE notes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL CHECK (scope IN ('person', 'channel', 'everybody')),
  key TEXT NOT NULL,
  rule TEXT NOT NULL, text TEXT NOT NULL,
  used INTEGER NOT NULL DEFAULT 1, -- 0: somebody has switched it off
  edited INTEGER NOT NULL DEFAULT 0,
  created_at REAL NOT NULL,
  UNIQUE (scope, key, text)
) STRICT;

-- The ratings that a line rests on: a bad one of an answer, or what was typed at it.
CREATE TABLE note_ratings (
  note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
  event INTEGER NOT NULL REFERENCES events (seq) ON DELETE CASCADE,
  PRIMARY KEY (note, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX note_ratings_by_event ON note_ratings (event);

-- No line without a rating behind it: it goes with the last one, whatever has deleted that.
CREATE TRIGGER note_rating_gone AFTER DELETE ON note_ratings
WHEN NOT EXISTS (SELECT 1 FROM note_ratings WHERE note = OLD.note) BEGIN
  DELETE FROM notes WHERE id = OLD.note;
END;

-- Whether answers in a shared channel follow lines: 1, 0, or as the config says.
ALTER TABLE channels ADD COLUMN notes INTEGER;
