-- Back to versions of which nobody says what they have changed.
DROP TABLE shift_examples;
DROP TABLE shifts;
