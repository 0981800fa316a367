-- Back to no memory of what was refused: told again, it is decided by the rights of then.
DROP TABLE refused;
