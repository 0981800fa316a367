-- Owners who keep their private chats out of training (`share off`).
CREATE TABLE IF NOT EXISTS withheld (
  person TEXT NOT NULL PRIMARY KEY, since REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- What the model thought before it answered: so many of the last prompt tokens are the thought's.
ALTER TABLE turns ADD COLUMN thought TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN thought_tokens INTEGER NOT NULL DEFAULT 0;
-- What was done to the distribution that an answer was drawn from beside the temperature, as JSON ('{}':
-- nothing, as always before), and by how many nats that made each of its tokens likelier.
ALTER TABLE turns ADD COLUMN filters TEXT NOT NULL DEFAULT '{}';
ALTER TABLE turns ADD COLUMN lifts BLOB NOT NULL DEFAULT x'';
ALTER TABLE pairs ADD COLUMN filters TEXT NOT NULL DEFAULT '{}';
ALTER TABLE pairs ADD COLUMN old_lifts BLOB NOT NULL DEFAULT x'';
ALTER TABLE pairs ADD COLUMN new_lifts BLOB NOT NULL DEFAULT x'';

-- turns.rated: 1 its labels teach, 2 they do not. That is for the reward policy to say, which no trigger
-- can ask: whoever changes labels counts anew (`store/teaching.py`).
DROP TRIGGER label_added;
DROP TRIGGER label_removed;
