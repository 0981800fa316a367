-- Back to answers that only people and programs rate.
DROP TABLE judgements;
