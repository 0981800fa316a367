-- Back to words that weigh as their answer.
UPDATE run_items SET words = (
  SELECT json_group_array(json(word)) FROM (
    SELECT json_remove(w.value, '$[4]') AS word FROM json_each(run_items.words) w ORDER BY w.key
  )
) WHERE words <> '[]';
