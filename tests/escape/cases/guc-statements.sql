-- class: guc
-- caller: superuser
-- mode: role
-- txn: block
-- must: no setting can be changed by a statement, whatever its scope
-- before:
SET LOCAL work_mem = '5MB'
-- before:
SET app.marker = 'mine'
-- attacks:
SET search_path = guest
SET LOCAL search_path = guest
SET TIME ZONE 'Asia/Tokyo'
SET NAMES 'LATIN1'
SET statement_timeout = 0
SET LOCAL work_mem TO DEFAULT
RESET work_mem
SET app.marker = 'theirs'
RESET app.marker
SET app.fresh = 'x'
SET aidb.principal = 'somebody'
SET aidb.tool_allowed_functions = 'set_config'
SET session_replication_role = replica
SET row_security = off
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
SET CONSTRAINTS ALL IMMEDIATE
SET XML OPTION DOCUMENT
ALTER SYSTEM RESET ALL
DO $$ BEGIN SET LOCAL search_path = guest; END $$
-- after:
SELECT current_setting('work_mem'), current_setting('app.marker'), current_setting('app.fresh', true) IS NULL
-- next:
SELECT current_setting('work_mem'), current_setting('app.marker')
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = '5MB|mine|t' AND judge.output('next') = '4MB|mine'
