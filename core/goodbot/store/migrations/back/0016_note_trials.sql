-- Back to taking every model to follow notes whose template has a system message.
DROP TABLE note_trials;
