-- What a run has changed in answers, a row a feature: see goodbot.api.learnt. `word`: of first words, which.
CREATE TABLE shifts (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  feature TEXT NOT NULL, word TEXT NOT NULL,
  answers INTEGER NOT NULL, questions INTEGER NOT NULL, trained INTEGER NOT NULL,
  old REAL NOT NULL, new REAL NOT NULL, change REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
  named INTEGER NOT NULL,
  PRIMARY KEY (run, feature, word)
) STRICT, WITHOUT ROWID;

-- Questions of a run with the answer before and after it; they go with the question.
CREATE TABLE shift_examples (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  old_answer TEXT NOT NULL, new_answer TEXT NOT NULL,
  PRIMARY KEY (run, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX shift_examples_by_turn ON shift_examples (turn);
