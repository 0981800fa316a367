-- What SQLite's functions of the same names do, without `lite_`. JSON is text here as there: what people said
-- may hold \u0000 in it, which PostgreSQL refuses to read.

CREATE OR REPLACE FUNCTION lite_json(said text) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN said = '' THEN NULL
    WHEN strpos(said, '\u0000') > 0 THEN regexp_replace(said, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u2400', 'g')::json
    ELSE said::json END
$$;

CREATE OR REPLACE FUNCTION lite_path(path text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT string_to_array(
    ltrim(replace(replace(replace(ltrim(path, '$'), '[#-', '.-'), '[', '.'), ']', ''), '.'), '.')
$$;

CREATE OR REPLACE FUNCTION lite_scalar(found json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE json_typeof(found) WHEN 'null' THEN NULL
    WHEN 'boolean' THEN CASE found #>> '{}' WHEN 'true' THEN '1' ELSE '0' END
    ELSE found #>> '{}' END
$$;

CREATE OR REPLACE FUNCTION lite_json_extract(said text, path text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lite_scalar(lite_json(said) #> lite_path(path))
$$;

CREATE OR REPLACE FUNCTION lite_json_each(said text) RETURNS TABLE (key text, value text, place bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20 AS $$
  SELECT (a.n - 1)::text, lite_scalar(a.one), a.n
    FROM (SELECT lite_json(said) AS whole) j,
      json_array_elements(CASE json_typeof(j.whole) WHEN 'array' THEN j.whole END) WITH ORDINALITY a (one, n)
  UNION ALL SELECT o.name, lite_scalar(o.one), o.n
    FROM (SELECT lite_json(said) AS whole) j,
      json_each(CASE json_typeof(j.whole) WHEN 'object' THEN j.whole END) WITH ORDINALITY o (name, one, n)
$$;

CREATE OR REPLACE FUNCTION lite_json_array_length(said text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE json_typeof(lite_json(said)) WHEN 'array' THEN json_array_length(lite_json(said)) ELSE 0 END
$$;

CREATE OR REPLACE FUNCTION lite_json_valid(said text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (said IS JSON)::int::bigint
$$;

CREATE OR REPLACE FUNCTION lite_number(value double precision) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN value = trunc(value) AND abs(value) < 1e15 THEN value::bigint::text || '.0'
    ELSE value::text END
$$;

CREATE OR REPLACE FUNCTION lite_json_quote(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT to_json(value)::text
$$;

CREATE OR REPLACE FUNCTION lite_json_quote(value double precision) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lite_number(value)
$$;

CREATE OR REPLACE FUNCTION lite_json_array(one double precision, other double precision) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT '[' || coalesce(lite_number(one), 'null') || ',' || coalesce(lite_number(other), 'null') || ']'
$$;

CREATE OR REPLACE FUNCTION lite_json_object(key text, value double precision) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT '{' || to_json(key)::text || ':' || coalesce(lite_number(value), 'null') || '}'
$$;

CREATE OR REPLACE FUNCTION lite_json_set(said text, path text, value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_set(lite_json(said)::jsonb, lite_path(path), to_jsonb(value))::text
$$;

CREATE OR REPLACE FUNCTION lite_json_remove(said text, path text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (lite_json(said)::jsonb #- lite_path(path))::text
$$;

-- Of SQLite's patterns the star alone: nothing here asks for more.
CREATE OR REPLACE FUNCTION lite_glob(said text, pattern text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (said LIKE replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%'))::int
$$;

CREATE OR REPLACE FUNCTION lite_integer(said text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN said IS NULL THEN NULL
    ELSE coalesce(substring(said FROM '^\s*([-+]?[0-9]{1,18})')::bigint, 0) END
$$;

CREATE OR REPLACE FUNCTION lite_integer(value bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT value
$$;

CREATE OR REPLACE FUNCTION lite_integer(value double precision) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT trunc(value)::bigint
$$;

CREATE OR REPLACE FUNCTION lite_real(said text) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN said IS NULL THEN NULL
    ELSE coalesce(substring(said FROM '^\s*([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?)')::double precision, 0)
    END
$$;

CREATE OR REPLACE FUNCTION lite_real(value double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT value
$$;

-- Without upper and lower case, in every script.
CREATE OR REPLACE FUNCTION lite_folded(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT casefold(said COLLATE pg_unicode_fast)
$$;

-- Whether a text has a word by which topics are found (`goodbot.base.topics.holds`): not as a part of another,
-- but in Chinese and Japanese, where no spaces tell that. Beside a letter each sign is looked at alone: no
-- pattern is made of what people said.
CREATE OR REPLACE FUNCTION lite_holds_word(said text, word text) RETURNS int
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  together CONSTANT text := '々㐀-鿿豈-﫿𠀀-𿿿ァ-ヺー-ヾぁ-ゟ';
  begun text := lite_folded(substr(said, 1, 1000));
  letter text := '[[:alpha:]]';
  here int := 1;
  found int;
BEGIN
  IF begun IS NULL OR word = '' THEN
    RETURN 0;
  END IF;
  IF word !~ ('[^' || together || ']') THEN
    RETURN (strpos(begun, word) > 0)::int;
  END IF;
  LOOP
    found := strpos(substr(begun, here), word);
    IF found = 0 THEN
      RETURN 0;
    END IF;
    here := here + found - 1;
    IF (here = 1 OR substr(begun, here - 1, 1) !~ (letter COLLATE pg_unicode_fast)
        OR substr(begun, here - 1, 1) ~ ('[' || together || ']'))
      AND (substr(begun, here + length(word), 1) !~ (letter COLLATE pg_unicode_fast)
        OR substr(begun, here + length(word), 1) ~ ('[' || together || ']')) THEN
      RETURN 1;
    END IF;
    here := here + 1;
  END LOOP;
END
$$;
