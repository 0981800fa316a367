-- Back to runs that remember ratings only.
ALTER TABLE run_items DROP COLUMN words;
