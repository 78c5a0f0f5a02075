-- class: privilege
-- caller: superuser
-- mode: readonly
-- must: what guest may not read stays unread, whichever way it is asked for
-- setup:
ANALYZE store.ledger;
SET ROLE guest;
CREATE FUNCTION guest.peek() RETURNS SETOF text LANGUAGE sql STABLE AS 'SELECT line FROM store.ledger';
CREATE FUNCTION guest.peek_definer() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN (SELECT min(line) FROM store.ledger); END';
-- attacks:
SELECT line FROM store.ledger
TABLE store.ledger
SELECT (SELECT max(line) FROM store.ledger) AS m
EXPLAIN ANALYZE SELECT * FROM store.ledger
SELECT guest.peek()
SELECT guest.peek_definer()
SELECT table_to_xml('store.ledger', true, true, '')
SELECT schema_to_xml('store', true, true, '')
SELECT string_agg(v::text, ' ') AS v FROM ts_stat('SELECT to_tsvector(line) FROM store.ledger') v
SELECT most_common_vals::text || histogram_bounds::text AS v FROM pg_stats WHERE tablename = 'ledger'
SELECT stavalues1::text AS v FROM pg_statistic WHERE starelid = 'store.ledger'::regclass
SELECT g.title FROM store.goods g JOIN store.ledger l ON l.line > g.title
SELECT 1 AS one FROM store.ledger LIMIT 0
-- check:
SELECT judge.told() NOT LIKE '%HUSH%'
