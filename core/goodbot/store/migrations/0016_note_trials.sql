-- Whether a model follows notes: tried once a model, since no template tells.
CREATE TABLE note_trials (model TEXT PRIMARY KEY, follows INTEGER NOT NULL, tried_at REAL NOT NULL) STRICT;
