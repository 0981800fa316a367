-- Back to leaving out what all have said alone: what single people said stays away until they rate again.
DELETE FROM quarantines WHERE rater IS NOT NULL;
ALTER TABLE quarantines DROP COLUMN rater;
