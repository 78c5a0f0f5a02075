-- class: internal
-- caller: superuser
-- mode: role
-- must: the extension's tables cannot be written by a tool, nor read but for what is guest's own
-- setup:
GRANT aidb_users, aidb_governance TO guest;
-- attacks:
INSERT INTO aidb_internal.action_log SELECT * FROM aidb_internal.action_log
INSERT INTO aidb_internal.decision_log SELECT * FROM aidb_internal.decision_log
DELETE FROM aidb_internal.action_log
DELETE FROM aidb_internal.decision_log
UPDATE aidb_internal.decision_log SET status = 'allowed'
UPDATE aidb_internal.purpose_registry SET role = 'postgres'
UPDATE aidb_internal.agents SET purpose = NULL
UPDATE aidb.purpose_registry SET role = 'postgres'
UPDATE aidb.agents SET purpose = NULL
DELETE FROM aidb.decisions
INSERT INTO aidb.models (name) VALUES ('x')
TRUNCATE aidb_internal.action_log
INSERT INTO aidb_internal.logged_steps SELECT * FROM aidb_internal.logged_steps
UPDATE aidb_internal.logged_steps SET steps = '[]'
DELETE FROM aidb_internal.logged_steps
TRUNCATE aidb_internal.logged_steps_default
SELECT * FROM aidb_internal.logged_steps
TRUNCATE aidb_internal.decision_log
LOCK aidb_internal.agents
SELECT * FROM aidb_internal.model_credentials
SELECT * FROM aidb_internal.models
SELECT * FROM aidb_internal.decision_log
SELECT * FROM aidb_internal.agents FOR UPDATE
CREATE TRIGGER t BEFORE INSERT ON aidb_internal.action_log FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger()
CREATE POLICY p ON aidb_internal.logged_steps USING (true)
ALTER TABLE aidb_internal.logged_steps DISABLE ROW LEVEL SECURITY
DROP TRIGGER log_step ON aidb_internal.action_log
DROP EXTENSION aidb CASCADE
ALTER EXTENSION aidb DROP TABLE aidb_internal.action_log
ALTER EXTENSION aidb UPDATE
DROP OWNED BY aidb_users
-- attack:
SELECT count(*) AS n FROM aidb_internal.action_log
-- attack:
SELECT count(*) AS n FROM aidb_internal.agent_task_queue
-- after:
SELECT count(*) FROM aidb.verify_decisions()
-- check:
SELECT bool_and(state <> '' OR n > 31) FROM judge.seen WHERE phase = 'attack'
-- check:
SELECT judge.output('attack', 32) = '[{"n": 0}]' AND judge.output('attack', 33) = '[{"n": 0}]' AND judge.output('after') = '0'
