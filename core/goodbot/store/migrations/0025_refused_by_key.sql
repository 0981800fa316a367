-- What was refused is known by MACs: ids of platforms can be guessed from the plain hashes, which go. Nothing
-- makes MACs of them without the ids, and what was refused in the last minutes may be told once more.
DELETE FROM refused;
