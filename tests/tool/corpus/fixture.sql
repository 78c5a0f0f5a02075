-- What the statements of writes.sql and reads.sql are about. Everything in schema w that writes does so by w.put, or says so.
CREATE SCHEMA w;
CREATE EXTENSION IF NOT EXISTS dblink;
CREATE TABLE w.t (id integer PRIMARY KEY, n integer, s text, tags text[], doc jsonb, at timestamptz DEFAULT now());
INSERT INTO w.t SELECT g, g * 10, 'row ' || g, ARRAY['a', 'b' || g], jsonb_build_object('k', g, 'list', jsonb_build_array(1, 2)), '2024-01-01'::timestamptz + g * interval '1 day' FROM generate_series(1, 5) g;
CREATE TABLE w.u (id integer PRIMARY KEY, t_id integer REFERENCES w.t, note text);
INSERT INTO w.u SELECT g, g, 'note ' || g FROM generate_series(1, 3) g;
CREATE TABLE w.tree (id integer PRIMARY KEY, parent integer, name text);
INSERT INTO w.tree VALUES (1, NULL, 'root'), (2, 1, 'left'), (3, 1, 'right'), (4, 2, 'leaf');
CREATE TABLE w."update" (id integer, "delete" text, "insert into" text);
INSERT INTO w."update" VALUES (1, 'drop table', 'truncate');
CREATE TABLE w.log (id serial PRIMARY KEY, s text);
CREATE SEQUENCE w.seq;
CREATE TYPE w.mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE w.pair AS (a integer, b text);
CREATE MATERIALIZED VIEW w.frozen AS SELECT id, s FROM w.t;

-- Writers, as they say.
CREATE FUNCTION w.put(x text) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO w.log (s) VALUES (x); RETURN 1; END $$;
CREATE FUNCTION w.put(x integer) RETURNS integer LANGUAGE sql AS $$ INSERT INTO w.log (s) VALUES (x::text) RETURNING 1 $$;
CREATE FUNCTION w.put_rows(x text) RETURNS SETOF w.log LANGUAGE sql AS $$ INSERT INTO w.log (s) VALUES (x) RETURNING * $$;
CREATE FUNCTION w.put_table() RETURNS TABLE (a integer, b text) LANGUAGE plpgsql AS $$ BEGIN PERFORM w.put('table'); RETURN QUERY SELECT 1, 'x'; END $$;
CREATE FUNCTION w.put_void() RETURNS void LANGUAGE sql AS $$ DELETE FROM w.log $$;
CREATE FUNCTION w.put_variadic(VARIADIC x text[]) RETURNS integer LANGUAGE sql AS $$ SELECT w.put(x[1]) $$;
CREATE FUNCTION w.put_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM w.put('trigger'); RETURN NEW; END $$;
CREATE PROCEDURE w.put_procedure() LANGUAGE sql AS $$ INSERT INTO w.log (s) VALUES ('procedure') $$;

-- Writers that say they only read.
CREATE FUNCTION w.sly(x text) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT w.put(x) $$;
CREATE FUNCTION w.sly_immutable(x text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT w.put(x) $$;
CREATE FUNCTION w.sly_atomic(x text) RETURNS integer LANGUAGE sql STABLE BEGIN ATOMIC SELECT w.put(x); END;
CREATE FUNCTION w.sly_return(x text) RETURNS integer LANGUAGE sql STABLE RETURN w.put(x);
CREATE FUNCTION w.sly_insert(x text) RETURNS integer LANGUAGE sql STABLE AS $$ INSERT INTO w.log (s) VALUES (x) RETURNING id $$;
CREATE FUNCTION w.sly_second(x text) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT 1; SELECT w.put(x) $$;
CREATE FUNCTION w.sly_cte(x text) RETURNS bigint LANGUAGE sql STABLE AS $$ WITH d AS (DELETE FROM w.log RETURNING 1) SELECT count(*) FROM d $$;
CREATE FUNCTION w.sly_lock() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT id::bigint FROM w.t FOR UPDATE $$;
CREATE FUNCTION w.sly_next() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT nextval('w.seq') $$;
CREATE FUNCTION w.sly_deep(x text) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT w.sly(x) $$;
CREATE FUNCTION w.sly_deeper(x text) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT w.sly_deep(x) + 0 $$;
CREATE FUNCTION w.sly_poly(x anyelement) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT w.put(x) $$;
CREATE FUNCTION w.sly_poly_array(x anyarray) RETURNS anyelement LANGUAGE sql STABLE AS $$ SELECT x[w.put('array')] $$;
CREATE FUNCTION w.sly_rows() RETURNS SETOF integer LANGUAGE sql STABLE AS $$ SELECT w.put('rows') FROM generate_series(1, 2) $$;
CREATE FUNCTION w.sly_default(x integer DEFAULT w.put('default')) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT x $$;
CREATE FUNCTION w.sly_text(x text, y text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT x || y || w.put(y) $$;
CREATE FUNCTION w.sly_final(x text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT x || w.put(x) $$;
CREATE FUNCTION w.sly_true(x text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT w.put(x) = 1 $$;
CREATE FUNCTION w.sly_configure() RETURNS text LANGUAGE sql STABLE AS $$ SELECT set_config('app.x', 'y', false) $$;
CREATE FUNCTION w.sly_create() RETURNS integer LANGUAGE sql STABLE AS $$ CREATE TABLE w.made_by_sly (a integer); SELECT 1 $$;
CREATE FUNCTION w.sly_explain() RETURNS integer LANGUAGE sql STABLE AS $$ EXPLAIN ANALYZE DELETE FROM w.log; SELECT 1 $$;
CREATE FUNCTION w.volatile_reader() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- a view of this one is made before it turns bad
CREATE FUNCTION w.turned(x text) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT length(x) $$;

CREATE OPERATOR w.+! (LEFTARG = text, RIGHTARG = text, FUNCTION = w.sly_text);
CREATE FUNCTION w.put_both(x integer, y integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN w.put(x) = 1; END $$;
CREATE OPERATOR w.=! (LEFTARG = integer, RIGHTARG = integer, FUNCTION = w.put_both);
CREATE OPERATOR w.!! (RIGHTARG = text, FUNCTION = w.sly_final);
CREATE AGGREGATE w.gather(text) (SFUNC = w.sly_text, STYPE = text, INITCOND = '');
CREATE AGGREGATE w.finish(text) (SFUNC = textcat, STYPE = text, FINALFUNC = w.sly_final, INITCOND = '');
CREATE AGGREGATE w.combine(text) (SFUNC = textcat, STYPE = text, COMBINEFUNC = w.sly_text, INITCOND = '', PARALLEL = safe);
CREATE AGGREGATE w.moving(text) (SFUNC = textcat, STYPE = text, INITCOND = '', MSFUNC = w.sly_text, MINVFUNC = w.sly_text, MSTYPE = text, MINITCOND = '');
CREATE AGGREGATE w.moving_back(text) (SFUNC = textcat, STYPE = text, INITCOND = '', MSFUNC = textcat, MINVFUNC = w.sly_text, MSTYPE = text, MINITCOND = '');
CREATE AGGREGATE w.moving_final(text) (SFUNC = textcat, STYPE = text, INITCOND = '', MSFUNC = textcat, MINVFUNC = textcat, MFINALFUNC = w.sly_final, MSTYPE = text, MINITCOND = '');
CREATE FUNCTION w.pair_text(p w.pair) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT w.put('cast')::text $$;
CREATE CAST (w.pair AS text) WITH FUNCTION w.pair_text(w.pair) AS IMPLICIT;
CREATE FUNCTION w.mood_number(m w.mood) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN w.put('mood'); END $$;
CREATE CAST (w.mood AS integer) WITH FUNCTION w.mood_number(w.mood);
CREATE DOMAIN w.noted AS text CHECK (w.sly_true(VALUE));
CREATE DOMAIN w.noted_again AS w.noted;
CREATE DOMAIN w.noted_loud AS text CHECK (w.put(VALUE) = 1);
CREATE TYPE w.holder AS (a integer, b w.noted);
CREATE TYPE w.noted_range AS RANGE (SUBTYPE = w.noted);
CREATE TABLE w.held (a integer, b w.noted);

CREATE VIEW w.view_put AS SELECT w.put('view') AS a;
CREATE VIEW w.view_sly AS SELECT w.sly(s) AS a FROM w.t;
CREATE VIEW w.view_twice AS SELECT a FROM w.view_put;
CREATE VIEW w.view_where AS SELECT id FROM w.t WHERE w.put(s) = 1;
CREATE VIEW w.view_lock AS SELECT id, s FROM w.t FOR UPDATE;
CREATE VIEW w.view_lateral AS SELECT t.id, x.a FROM w.t, LATERAL w.put_table() x;
CREATE VIEW w.view_turned AS SELECT w.turned(s) AS a FROM w.t;
CREATE OR REPLACE FUNCTION w.turned(x text) RETURNS integer LANGUAGE sql STABLE AS $$ SELECT w.put(x) $$;
CREATE VIEW w.view_good AS SELECT id, upper(s) AS s FROM w.t;
CREATE VIEW w.view_better WITH (security_barrier) AS SELECT s FROM w.view_good WHERE id < 4;
CREATE RECURSIVE VIEW w.view_recursive (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM view_recursive WHERE n < 3;

CREATE TABLE w.policed (a text);
INSERT INTO w.policed VALUES ('seen');
ALTER TABLE w.policed ENABLE ROW LEVEL SECURITY;
CREATE POLICY writes ON w.policed USING (w.put(a) = 1);
CREATE TABLE w.policed_sly (a text);
ALTER TABLE w.policed_sly ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON w.policed_sly FOR SELECT USING (EXISTS (SELECT FROM w.view_sly));
CREATE TABLE w.policed_good (a text);
INSERT INTO w.policed_good VALUES ('seen');
ALTER TABLE w.policed_good ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON w.policed_good FOR SELECT USING (a <> current_user);
CREATE POLICY changes ON w.policed_good FOR UPDATE USING (w.put(a) = 1);

-- Honest readers.
CREATE FUNCTION w.twice(x integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT x * 2 $$;
CREATE FUNCTION w.pl(x integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x + 1; END $$;
CREATE FUNCTION w.pl_reader() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM w.t); END $$;
CREATE FUNCTION w.same(x anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT x $$;
CREATE FUNCTION w.first(x anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT x[1] $$;
CREATE FUNCTION w.rows_of(n integer) RETURNS SETOF w.t LANGUAGE sql STABLE AS $$ SELECT * FROM w.t WHERE id <= n $$;
CREATE FUNCTION w.factorial(n integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN n < 2 THEN 1 ELSE n * w.factorial(n - 1) END $$;
CREATE FUNCTION w.tomorrow(x date DEFAULT current_date) RETURNS date LANGUAGE sql STABLE AS $$ SELECT x + 1 $$;
CREATE FUNCTION w.atomic(n integer) RETURNS text LANGUAGE sql STABLE BEGIN ATOMIC SELECT s FROM w.t WHERE id = n; END;
CREATE OPERATOR w.## (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4mul);
CREATE AGGREGATE w.join_up(text) (SFUNC = textcat, STYPE = text, INITCOND = '');
CREATE DOMAIN w.positive AS integer CHECK (VALUE > 0);
CREATE TYPE w.point AS (x w.positive, y w.positive);

GRANT USAGE ON SCHEMA w TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA w TO PUBLIC;
GRANT SELECT ON SEQUENCE w.seq TO PUBLIC;
GRANT INSERT ON w.log TO PUBLIC;
GRANT UPDATE, DELETE ON w.t TO PUBLIC;
GRANT INSERT ON w.u TO PUBLIC;
