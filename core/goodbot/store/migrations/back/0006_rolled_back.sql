-- Back to spans that go by what the clock said alone.
ALTER TABLE quarantines DROP COLUMN first_event_seq;
