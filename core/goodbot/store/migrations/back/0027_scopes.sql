-- Back to one adapter for all: those of scopes, and what they have learnt, are nobody's there.
DROP TRIGGER run_let_go;
CREATE TRIGGER run_let_go AFTER UPDATE OF state ON runs
WHEN NEW.state IN ('failed', 'superseded', 'released') BEGIN
  UPDATE turns SET spent = NULL WHERE spent = NEW.id;
END;
DROP TRIGGER turn_claimed;
CREATE TRIGGER turn_claimed AFTER INSERT ON run_items
WHEN NEW.split = 'train' AND NOT NEW.replayed BEGIN
  UPDATE turns SET spent = NEW.run
    WHERE id = NEW.turn AND model = (SELECT model FROM runs WHERE id = NEW.run);
END;
DROP INDEX turns_own;
DROP INDEX turns_own_spent;
ALTER TABLE turns DROP COLUMN own;
ALTER TABLE turns DROP COLUMN own_spent;
DELETE FROM switches WHERE name IN (SELECT 'retrain ' || model || ' ' || scope FROM pointers
  UNION SELECT 'lost ' || model || ' ' || scope FROM pointers);
DELETE FROM pointers WHERE scope <> 'default';
DELETE FROM comparisons WHERE scope <> 'default';
DELETE FROM canaries WHERE scope <> 'default';
DELETE FROM adapters WHERE scope <> 'default';
DELETE FROM run_notes WHERE run IN (SELECT id FROM runs WHERE scope <> 'default');
DELETE FROM shift_examples WHERE run IN (SELECT id FROM runs WHERE scope <> 'default');
DELETE FROM shifts WHERE run IN (SELECT id FROM runs WHERE scope <> 'default');
DELETE FROM run_items WHERE run IN (SELECT id FROM runs WHERE scope <> 'default');
DELETE FROM runs WHERE scope <> 'default';
