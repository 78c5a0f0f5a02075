-- class: prepared
-- caller: superuser
-- mode: role
-- must: the caller's prepared statements can be neither run, read, dropped nor replaced
-- before:
PREPARE mine AS SELECT 'right' AS v
-- before:
PREPARE hush AS SELECT 'HUSH'
-- attacks:
EXECUTE hush
EXPLAIN EXECUTE hush
EXPLAIN ANALYZE EXECUTE hush
DEALLOCATE mine
DEALLOCATE ALL
DEALLOCATE PREPARE mine
PREPARE fresh AS SELECT guest.payload('prepared')
SELECT name, statement FROM pg_prepared_statements
SELECT pg_prepared_statement()
DO $$ BEGIN DEALLOCATE mine; END $$
DO $$ BEGIN EXECUTE 'DEALLOCATE mine'; EXECUTE 'PREPARE mine AS SELECT guest.payload(''replaced'')'; END $$
DISCARD PLANS
DISCARD SEQUENCES
DISCARD TEMP
CREATE TABLE guest.made AS EXECUTE hush
-- after:
EXECUTE mine
-- after:
EXECUTE fresh
-- check:
SELECT judge.none_fine('attack') AND judge.told() NOT LIKE '%HUSH%' AND judge.output('after') = 'right' AND judge.state('after', 2) = '26000' AND NOT judge.breached()
