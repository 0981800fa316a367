-- What raters said of an answer beside their rating and a run has learnt: a JSON list of [kind, person, at,
-- hint]. `at` is the ledger's event that holds the text, of a chip when it was pressed; no text is here.
ALTER TABLE run_items ADD COLUMN words TEXT NOT NULL DEFAULT '[]';
