-- Back to ratings that are found by their answer and rater alone.
DROP INDEX events_retracting;
DROP INDEX events_said;
DROP INDEX events_placed;
CREATE INDEX events_by_turn ON events (turn, rater);
