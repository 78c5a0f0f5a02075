-- class: resource
-- caller: member
-- mode: readonly
-- must: statements that are hard to parse, deep or endless, end with an error
-- setup:
CREATE FUNCTION safe.hard(kind text) RETURNS text LANGUAGE sql AS $f$
    SELECT CASE kind
        WHEN 'parentheses' THEN 'SELECT ' || repeat('(', 200000) || '1' || repeat(')', 200000)
        WHEN 'casts' THEN 'SELECT 1' || repeat('::integer', 100000)
        WHEN 'subqueries' THEN repeat('SELECT * FROM (', 5000) || 'SELECT 1 AS one' || repeat(') s', 5000)
        WHEN 'unions' THEN 'SELECT 1 AS n' || repeat(' UNION ALL SELECT 1', 20000)
        WHEN 'operators' THEN 'SELECT 1' || repeat(' + 1', 200000)
        WHEN 'case' THEN 'SELECT ' || repeat('CASE WHEN true THEN ', 20000) || '1' || repeat(' END', 20000)
        WHEN 'names' THEN 'SELECT ' || repeat('x', 1000000)
        WHEN 'not' THEN 'SELECT ' || repeat('NOT ', 200000) || 'true'
        WHEN 'arrays' THEN 'SELECT ' || repeat('ARRAY[', 20000) || '1' || repeat(']', 20000)
        WHEN 'comment' THEN 'SELECT 1 ' || repeat('/*', 2000)
        WHEN 'in' THEN 'SELECT 1 AS v WHERE 1 IN (' || repeat('1, ', 500000) || '1)'
    END $f$;
GRANT USAGE ON SCHEMA safe TO PUBLIC;
-- before:
DO $$
DECLARE k text; told text;
BEGIN
    FOREACH k IN ARRAY ARRAY['parentheses', 'casts', 'subqueries', 'unions', 'operators', 'case', 'names', 'not', 'arrays', 'comment', 'in'] LOOP
        told := harness.ask('guest_reads', safe.hard(k));
        IF k NOT IN ('in', 'unions', 'operators', 'casts') AND told NOT LIKE 'refused: %' THEN
            RAISE EXCEPTION '%: %', k, left(told, 200);
        END IF;
    END LOOP;
END $$
-- attack:
SELECT 1 AS one
-- check:
SELECT judge.fine('before') AND judge.fine('attack')
