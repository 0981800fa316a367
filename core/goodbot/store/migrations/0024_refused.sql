-- What was refused, by hashes of its id and of its person: told again, it is not done with rights of later.
CREATE TABLE refused (
  seq INTEGER PRIMARY KEY,
  event BLOB NOT NULL UNIQUE, person BLOB NOT NULL, at REAL NOT NULL
) STRICT;
