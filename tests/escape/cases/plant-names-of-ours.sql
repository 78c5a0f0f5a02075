-- class: plant
-- caller: superuser
-- mode: role
-- must: objects that guest planted in front of the extension's own names and of pg_catalog's are not used by it
-- setup:
GRANT CREATE ON SCHEMA public TO guest;
SET ROLE guest;
CREATE FUNCTION public.planted(text, text) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('operator'); RETURN $1::bytea OPERATOR(pg_catalog.=) $2::bytea; END $f$;
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, PROCEDURE = public.planted);
CREATE FUNCTION public.planted(name, text) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('name operator'); RETURN true; END $f$;
CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, PROCEDURE = public.planted);
CREATE FUNCTION public.planted(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('uuid operator'); RETURN true; END $f$;
CREATE OPERATOR public.= (LEFTARG = uuid, RIGHTARG = uuid, PROCEDURE = public.planted);
CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('format'); RETURN $1; END $f$;
CREATE FUNCTION public.coalesce_it(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('lower'); RETURN $1; END $f$;
CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('now'); RETURN pg_catalog.now(); END $f$;
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('clock'); RETURN pg_catalog.now(); END $f$;
CREATE FUNCTION public.gen_random_uuid() RETURNS uuid LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('uuid'); RETURN pg_catalog.gen_random_uuid(); END $f$;
CREATE FUNCTION public.caller() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('caller'); RETURN 'keeper'; END $f$;
CREATE FUNCTION public.agent_converse(text, text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('converse'); RETURN ''; END $f$;
CREATE FUNCTION public.to_jsonb(anyelement) RETURNS jsonb LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('to_jsonb'); RETURN '{}'; END $f$;
CREATE TABLE public.agents (name text); CREATE TABLE public.tools (name text); CREATE TABLE public.action_log (id uuid);
CREATE DOMAIN public.regrole AS pg_catalog.regrole; CREATE DOMAIN public.uuid AS pg_catalog.uuid;
-- before:
SET search_path = guest, public, pg_catalog
-- attack:
SELECT title FROM store.goods WHERE id = 1
-- after:
SELECT count(*) FROM aidb.create_agent('planted', 'i', 'reads', tools => ARRAY['run_sql_query'])
-- after:
SELECT count(*) FROM aidb.update_agent('planted', instructions => 'j')
-- after:
SELECT count(*) FROM aidb.list_agents()
-- after:
SELECT message FROM aidb.agent_converse('planted', 'SELECT 1 AS one')
-- after:
SELECT count(*) FROM aidb.get_conversation(pg_catalog.gen_random_uuid()::pg_catalog.text)
-- after:
SELECT aidb.create_purpose('planted', 'guest')
-- after:
SELECT aidb.create_model('planted', 'dummy', '{"responses": [{"response": "x"}]}', validate => false)
-- after:
SELECT count(*) FROM aidb.delete_agent('planted', force => true)
-- after:
SELECT count(*) FROM aidb.verify_decisions()
-- after:
SELECT count(*) FROM aidb.conversations
-- check:
SELECT judge.all_fine('after') AND NOT judge.breached()
