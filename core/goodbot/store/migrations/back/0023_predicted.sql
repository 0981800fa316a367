-- Back to no reward model: what it said is computed, and can be again.
DROP TABLE predictions;
DROP TABLE predicted;
