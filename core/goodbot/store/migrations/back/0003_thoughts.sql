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
CREATE TRIGGER label_added AFTER INSERT ON labels BEGIN
  UPDATE turns SET rated = now.rated FROM
    (SELECT iif(sum((value > 0) - (value < 0)) = 0, 2, 1) AS rated FROM labels WHERE turn = NEW.turn) AS now
    WHERE turns.id = NEW.turn AND turns.rated <> now.rated;
END;
CREATE TRIGGER label_removed AFTER DELETE ON labels BEGIN
  UPDATE turns SET rated = now.rated FROM
    (SELECT iif(count(*) = 0, 0, iif(sum((value > 0) - (value < 0)) = 0, 2, 1)) AS rated
       FROM labels WHERE turn = OLD.turn) AS now
    WHERE turns.id = OLD.turn AND turns.rated <> now.rated;
END;
UPDATE turns SET rated = (SELECT iif(sum((value > 0) - (value < 0)) = 0, 2, 1) FROM labels WHERE turn = turns.id)
  WHERE rated > 0;
