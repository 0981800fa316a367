-- Who has asked to talk to the bot, and what they call themselves: an owner decides, also after a restart.
CREATE TABLE join_requests (
  seq INTEGER PRIMARY KEY,
  person TEXT NOT NULL UNIQUE, name TEXT NOT NULL, at REAL NOT NULL
) STRICT;
