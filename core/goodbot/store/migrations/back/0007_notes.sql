-- Back to answers that no line precedes.
DROP TABLE note_ratings;
DROP TABLE notes;
ALTER TABLE channels DROP COLUMN notes;
