-- class: guc
-- caller: member
-- mode: role
-- must: defaults set on the role are not applied by acting as it, and the call's own limits stand
-- setup:
ALTER ROLE guest SET max_parallel_workers_per_gather = 7;
ALTER ROLE guest SET row_security = off;
-- attack:
SELECT current_setting('max_parallel_workers_per_gather') AS w, current_setting('row_security') AS r, current_setting('client_min_messages') AS m
-- check:
SELECT judge.output('attack') = '[{"w": "0", "r": "on", "m": "error"}]'
