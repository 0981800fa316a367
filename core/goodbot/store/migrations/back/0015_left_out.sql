-- Back to ratings that are left out by when they came alone: those of single answers stay away until rated again.
DROP INDEX turns_rated;
DROP INDEX quarantines_by_turn;
DELETE FROM quarantines WHERE turn IS NOT NULL;
ALTER TABLE quarantines DROP COLUMN turn;
