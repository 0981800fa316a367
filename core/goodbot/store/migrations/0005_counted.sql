-- Every rating counts what waits: ratings that teach nothing, and answers that may not train or that
-- another model gave where those are not learnt from, wait for ever and are passed over without being read.
DROP INDEX turns_claimable;
CREATE INDEX turns_claimable ON turns
  (scope, model, channel_kind, rated = 1 AND trainable, answered_by <> '', connector || ':' || talker,
   rated, trainable, answered_by, spent)
  WHERE rated > 0 AND spent IS NULL;
