-- The first event that was received since then: what came after it did, too, whatever the clock said by
-- then. NULL where there was none, and for what was left out before.
ALTER TABLE quarantines ADD COLUMN first_event_seq INTEGER;
