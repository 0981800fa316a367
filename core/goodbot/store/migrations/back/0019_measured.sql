-- Back to answers of which nobody knows how long they took, and to no fixed questions.
DROP TABLE fixed_answers;
DROP TABLE waits;
