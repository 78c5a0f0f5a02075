-- class: guc
-- caller: superuser
-- mode: role
-- needs: pg_trgm
-- must: a library's own function that sets a setting does not change it for the caller
-- before:
SELECT set_limit(0.4)
-- attack:
SELECT set_limit(0.99) AS v
-- after:
SELECT show_limit()
-- check:
SELECT judge.output('after') = '0.4'
