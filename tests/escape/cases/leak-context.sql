-- class: leak
-- caller: superuser
-- mode: role
-- must: the caller's statements, which PL/pgSQL would show as context of where the call is, are not shown
-- before:
CREATE FUNCTION safe.asks(secret text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE told text;
BEGIN
    EXECUTE format('SELECT harness.ask(%L, %L) /* %s */', 'guest_writes', $q$
        DO $d$
        DECLARE one text; two text;
        BEGIN
            GET DIAGNOSTICS one = PG_CONTEXT;
            BEGIN PERFORM 1/0; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS two = PG_EXCEPTION_CONTEXT; END;
            RAISE EXCEPTION 'context: % %', one, two;
        END $d$ $q$, secret) INTO told;
    RETURN told;
END $f$
-- before:
SELECT safe.asks('HUSH-4711')
-- attack:
DO $$ DECLARE x text; BEGIN GET DIAGNOSTICS x = PG_CONTEXT; RAISE EXCEPTION 'context: %', x; END $$
-- check:
SELECT judge.output('before', 2) LIKE 'refused: %context: PL/pgSQL function inline_code_block%' AND judge.output('before', 2) NOT LIKE '%HUSH%' AND judge.message('attack') NOT LIKE '%harness%'
