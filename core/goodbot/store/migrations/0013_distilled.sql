-- Notes that a run taught, by their numbers: each goes when its person deletes it, and what was taught stays
-- known. `ratings`: what it rested on then, a JSON list of the ledger's events; no text is here. `state`:
-- `taught`; `retired`: answers of the run's version do not need it any more; `kept`: its person wants it in the
-- prompt all the same.
CREATE TABLE run_notes (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  note INTEGER NOT NULL,
  ratings TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'taught' CHECK (state IN ('taught', 'retired', 'kept')),
  PRIMARY KEY (run, note)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_notes_by_note ON run_notes (note);

-- Which of them are taught on an answer, the most important first: a JSON list of numbers.
ALTER TABLE run_items ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';
-- What the answer that they teach weighs.
ALTER TABLE run_items ADD COLUMN note_weight REAL NOT NULL DEFAULT 0;
