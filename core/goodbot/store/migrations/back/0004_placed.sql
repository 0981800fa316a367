-- Back to one note for both: it keeps the start from joining what was set apart.
UPDATE OR REPLACE told SET person = 'own ' || substr(person, 8) WHERE person LIKE 'placed %';
DELETE FROM told WHERE person LIKE 'said %';
