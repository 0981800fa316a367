-- `own ACCOUNT` in `told` said two things: that the start need not place an account again, which is
-- `placed ACCOUNT` now, and that it is the owner's own, which ends when it is unlinked.
INSERT OR IGNORE INTO told SELECT 'placed ' || substr(person, 5) FROM told WHERE person LIKE 'own %';
DELETE FROM told WHERE person LIKE 'own %' AND substr(person, 5) NOT IN (SELECT person FROM links);
