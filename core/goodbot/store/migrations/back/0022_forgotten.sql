-- Back to taking the reactions of who was forgotten for missed ones.
ALTER TABLE turns DROP COLUMN forgotten;
