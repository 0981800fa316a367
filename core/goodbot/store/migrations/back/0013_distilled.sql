-- Back to runs that teach no notes: all of them are in the prompts again.
ALTER TABLE run_items DROP COLUMN note_weight;
ALTER TABLE run_items DROP COLUMN notes;
DROP TABLE run_notes;
