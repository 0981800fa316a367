-- Back to the order in which the index was.
DROP INDEX turns_claimable;
CREATE INDEX turns_claimable ON turns
  (scope, model, channel_kind, connector || ':' || talker, rated, trainable, answered_by, spent)
  WHERE rated > 0 AND spent IS NULL;
