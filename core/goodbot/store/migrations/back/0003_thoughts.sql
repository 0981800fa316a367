-- Back to what the commits before could open: what counts is told by signs again.
DROP TABLE withheld;
-- They take log-probs for those of the whole distribution: what was drawn from another they score anew.
UPDATE turns SET prompt_tokens = x'', tokens = x'', logprobs = x'' WHERE filters <> '{}';
ALTER TABLE turns DROP COLUMN filters;
ALTER TABLE turns DROP COLUMN lifts;
ALTER TABLE turns DROP COLUMN thought;
ALTER TABLE turns DROP COLUMN thought_tokens;
ALTER TABLE pairs DROP COLUMN filters;
ALTER TABLE pairs DROP COLUMN old_lifts;
ALTER TABLE pairs DROP COLUMN new_lifts;
DELETE FROM switches WHERE name = 'counted by';
