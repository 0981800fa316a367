-- A rating that was changed often costs what its first change cost: the last word by each clock (`events_placed`),
-- the last word of each source (`events_said`) and what takes one of them back are found by a few seeks.
-- The expressions are those of `store/last_said.py`.
DROP INDEX events_by_turn;
CREATE INDEX events_placed ON events
  (turn, rater,
   quote(connector) || quote(account) || (substr(tiebreak, 1, 1) = '~' AND NOT instr(tiebreak, '+')),
   printf('%015d', time_ms) || tiebreak);
CREATE INDEX events_said ON events
  (turn, rater, quote(connector) || quote(account) || quote(kind) || quote(source),
   printf('%015d', time_ms) || tiebreak || char(1) || event_id)
  WHERE value IS NOT NULL OR (kind = 'retract' AND retracts = '');
CREATE INDEX events_retracting ON events (turn, connector, account, retracts) WHERE retracts <> '';
