-- Beside the shared adapter an answer may teach that of its own scope: of a person, a channel or a team
-- (`goodbot/store/scopes.py`). `own` names it; NULL: none, as everywhere where scopes are not set.
-- `own_spent` is to it what `spent` is to the shared one.
ALTER TABLE turns ADD COLUMN own TEXT;
ALTER TABLE turns ADD COLUMN own_spent INTEGER;
CREATE INDEX turns_own ON turns (own, model, rated, trainable, answered_by, own_spent)
  WHERE own IS NOT NULL AND rated > 0;
CREATE INDEX turns_own_spent ON turns (own_spent) WHERE own_spent IS NOT NULL;
DROP TRIGGER turn_claimed;
CREATE TRIGGER turn_claimed AFTER INSERT ON run_items
WHEN NEW.split = 'train' AND NOT NEW.replayed BEGIN
  UPDATE turns SET spent = NEW.run
    WHERE id = NEW.turn AND (scope, model) = (SELECT scope, model FROM runs WHERE id = NEW.run);
  UPDATE turns SET own_spent = NEW.run
    WHERE id = NEW.turn AND (own, model) = (SELECT scope, model FROM runs WHERE id = NEW.run);
END;
DROP TRIGGER run_let_go;
CREATE TRIGGER run_let_go AFTER UPDATE OF state ON runs
WHEN NEW.state IN ('failed', 'superseded', 'released') BEGIN
  UPDATE turns SET spent = NULL WHERE spent = NEW.id;
  UPDATE turns SET own_spent = NULL WHERE own_spent = NEW.id;
END;
