-- Back to plain hashes: what is known by a MAC would be known by none of them.
DELETE FROM refused;
