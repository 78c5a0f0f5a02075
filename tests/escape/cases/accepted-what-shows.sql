-- class: accepted
-- caller: superuser
-- mode: role
-- must: a call can tell who is at the session and what its settings are; policies are written on current_user for that reason
-- before:
SET app.marker = 'readable'
-- attack:
SELECT session_user AS s, current_user AS c, current_setting('app.marker') AS m, current_setting('role') AS r
-- check:
SELECT judge.output('attack') = '[{"s": "postgres", "c": "guest", "m": "readable", "r": "none"}]'
