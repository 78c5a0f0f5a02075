-- class: role-escape
-- caller: superuser
-- mode: readonly
-- txn: block
-- must: SET LOCAL ROLE of the caller ends with its transaction as ever
-- before:
SET LOCAL ROLE keeper
-- attack:
SELECT current_user AS now
-- attack:
SELECT 1/0 AS fails
-- after:
SELECT current_user
-- next:
SELECT current_user
-- check:
SELECT judge.output('after') = 'keeper' AND judge.output('next') = 'postgres' AND judge.output('attack') LIKE '%"guest"%'
