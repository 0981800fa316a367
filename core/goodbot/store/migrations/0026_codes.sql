-- Why a version waits or is not to be used, and how some trainings ended, was kept as an English sentence that
-- code compared. It is a code now, with a text in each language. What no code stands for stays as it is.
CREATE TABLE said_before (said TEXT NOT NULL PRIMARY KEY, code TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO said_before (said, code) VALUES
  ('somebody whose words or ratings it learnt from is forgotten', 'kept_forgotten'),
  ('the version that answers is pinned', 'kept_pinned'),
  ('the model is not running', 'kept_away'),
  ('the model server does not really serve it', 'kept_unserved'),
  ('it is tried on a share of the conversations', 'kept_tried'),
  ('owners compare a few answers first; without a reply I switch to it after 24 hours', 'kept_compared'),
  ('owners compare a few answers first; without a reply I switch to it within a day', 'kept_compared'),
  ('its owners are asked first whether it is better, for a day at most', 'kept_compared'),
  ('its owners are asked first whether it is better, if it answers otherwise, for a day at most',
    'kept_compared'),
  ('a rating that it was trained on has changed', 'kept_changed'),
  ('a rating that it was trained on counts otherwise since two accounts are one person''s', 'kept_joined'),
  ('ratings that it was trained on do not count any more', 'kept_uncounted'),
  ('ratings that it was trained on are in quarantine', 'kept_uncounted'),
  ('`rollback all` has withdrawn all there were', 'kept_begun_anew'),
  ('`reset` has withdrawn all there were', 'kept_begun_anew'),
  ('its training was refused', 'kept_run_refused'),
  ('its training failed', 'kept_run_failed'),
  ('its training was ended', 'kept_run_superseded'),
  ('its run was refused', 'kept_run_refused'),
  ('its run was failed', 'kept_run_failed'),
  ('its run was superseded', 'kept_run_superseded'),
  ('it was cancelled', 'kept_cancelled'),
  ('training was stopped', 'kept_stopped'),
  ('the trainer reported no verdict', 'kept_no_verdict'),
  ('the version that it continues has lost its trial', 'kept_lost_trial'),
  ('owners found the version that it continues worse than the one before', 'kept_found_worse');
UPDATE adapters SET tainted = (SELECT b.code FROM said_before b WHERE b.said = adapters.tainted)
  WHERE tainted IN (SELECT said FROM said_before);
UPDATE adapters SET waits = (SELECT b.code FROM said_before b WHERE b.said = adapters.waits)
  WHERE waits IN (SELECT said FROM said_before);
UPDATE switches SET value = (SELECT b.code FROM said_before b WHERE b.said = switches.value)
  WHERE name LIKE 'retrain %' AND value IN (SELECT said FROM said_before);
-- What stands alone becomes a list of one reason, as `codec.dump_reasons` writes it.
UPDATE runs SET reason = (SELECT '[["' || b.code || '",{}]]' FROM said_before b WHERE b.said = runs.reason)
  WHERE reason IN (SELECT said FROM said_before);
UPDATE canaries SET reason =
    (SELECT '[["' || b.code || '",{}]]' FROM said_before b WHERE b.said = canaries.reason)
  WHERE reason IN (SELECT said FROM said_before);
-- Nobody has read it: the state says all.
UPDATE canaries SET reason = '' WHERE state = 'superseded';
-- Within a reason: what a version waits for, or why the one before it is not to be used; one at most.
UPDATE runs SET reason = (SELECT replace(runs.reason, '"why":"' || b.said || '"', '"why":"' || b.code || '"')
    FROM said_before b
    WHERE replace(runs.reason, '"why":"' || b.said || '"', '') <> runs.reason)
  WHERE reason LIKE '[[%' AND EXISTS (SELECT 1 FROM said_before b
    WHERE replace(runs.reason, '"why":"' || b.said || '"', '') <> runs.reason);
-- Within why a training began: what it replaces.
UPDATE runs SET why = (SELECT replace(runs.why, '"said":"' || b.said || '"', '"said":"' || b.code || '"')
    FROM said_before b
    WHERE replace(runs.why, '"said":"' || b.said || '"', '') <> runs.why)
  WHERE why LIKE '[[%' AND EXISTS (SELECT 1 FROM said_before b
    WHERE replace(runs.why, '"said":"' || b.said || '"', '') <> runs.why);
DROP TABLE said_before;
