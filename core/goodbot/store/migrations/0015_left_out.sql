-- What was said of one answer, which an owner has left out; NULL: of all answers in that time.
ALTER TABLE quarantines ADD COLUMN turn TEXT REFERENCES turns (id) ON DELETE CASCADE;
CREATE INDEX quarantines_by_turn ON quarantines (turn);
-- The rated answers, by when they were given.
CREATE INDEX turns_rated ON turns (created_at) WHERE rated > 0;
