-- Each word gets its weight, behind its hint: until now it was the whole answer's.
UPDATE run_items SET words = (
  SELECT json_group_array(json(word)) FROM (
    SELECT json_insert(w.value, '$[#]', run_items.weight) AS word FROM json_each(run_items.words) w ORDER BY w.key
  )
) WHERE words <> '[]';
