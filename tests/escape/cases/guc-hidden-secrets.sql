-- class: guc
-- caller: owner
-- mode: readonly
-- txn: block
-- must: settings whose names say that they are secrets are blank in the call and themselves again after it
-- before:
SET app.token = 'HUSH-token'; SET LOCAL app.marker = 'mine'; SET my.API_KEY_prod = 'HUSH-key'; SET x.password = 'HUSH-word'
-- attacks:
SHOW app.token
SELECT current_setting('app.token') AS v
SELECT current_setting('my.api_key_prod', true) AS v
SELECT name, setting FROM pg_settings WHERE setting LIKE 'HUSH%'
SHOW ALL
SELECT current_setting('x.password') AS v
SELECT 1/0 AS v
-- after:
SELECT current_setting('app.token'), current_setting('my.api_key_prod'), current_setting('app.marker')
-- check:
SELECT judge.told() NOT LIKE '%HUSH%' AND judge.output('after') = 'HUSH-token|HUSH-key|mine'
