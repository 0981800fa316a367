-- What one account has said, which an owner has left out; NULL: what all have said.
ALTER TABLE quarantines ADD COLUMN rater TEXT;
