-- What honest statements of legit_test.go work on.
SET ROLE keeper;
CREATE TABLE store.customers (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    tags text[] NOT NULL DEFAULT '{}',
    profile jsonb NOT NULL DEFAULT '{}',
    since date NOT NULL DEFAULT '2024-01-01',
    shout text GENERATED ALWAYS AS (upper(name)) STORED
);
INSERT INTO store.customers (name, tags, profile) VALUES
    ('ann', '{new,vip}', '{"city": "Oslo", "age": 31}'), ('bob', '{}', '{"city": "Rome"}'), ('cyd', '{vip}', '{}');
CREATE TABLE store.sales (id serial PRIMARY KEY, customer integer NOT NULL REFERENCES store.customers ON DELETE CASCADE,
    good integer NOT NULL REFERENCES store.goods, amount numeric(10, 2) NOT NULL CHECK (amount >= 0), at timestamptz NOT NULL DEFAULT now());
INSERT INTO store.sales (customer, good, amount, at) SELECT 1 + g % 3, 1 + g % 40, g, timestamptz '2024-05-01 12:00+00' + g * interval '1 day'
    FROM generate_series(1, 60) g;
CREATE TABLE store.journal (what text, who name DEFAULT current_user, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION store.write_down() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN INSERT INTO store.journal (what) VALUES (TG_OP || ' ' || TG_TABLE_NAME); RETURN NULL; END $f$;
CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON store.customers FOR EACH ROW EXECUTE FUNCTION store.write_down();
CREATE FUNCTION store.total(customer integer) RETURNS numeric LANGUAGE plpgsql STABLE AS $f$
DECLARE s numeric; r record; BEGIN s := 0; FOR r IN SELECT amount FROM store.sales x WHERE x.customer = total.customer LOOP s := s + r.amount; END LOOP; RETURN s; END $f$;
CREATE FUNCTION store.best(n integer) RETURNS TABLE (name text, sum numeric) LANGUAGE sql STABLE AS $f$
SELECT c.name, sum(s.amount) FROM store.customers c JOIN store.sales s ON s.customer = c.id GROUP BY c.name ORDER BY 2 DESC LIMIT n $f$;
CREATE FUNCTION store.ledger_lines() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = store, pg_temp AS 'SELECT count(*) FROM ledger';
CREATE FUNCTION store.book(line text) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = store, pg_temp AS $f$
DECLARE n integer; BEGIN INSERT INTO ledger SELECT max(id) + 1, book.line FROM ledger RETURNING id INTO n; RETURN n; END $f$;
CREATE PROCEDURE store.restock(good integer, n integer, INOUT now integer DEFAULT NULL) LANGUAGE plpgsql AS $f$
BEGIN UPDATE store.goods SET stock = stock + n WHERE id = good RETURNING stock INTO now; END $f$;
CREATE DOMAIN store.positive AS integer CHECK (VALUE > 0);
CREATE TYPE store.size AS (w integer, h integer);
CREATE TABLE store.kinds (p store.positive, z store.size, r int4range, m int4multirange, u uuid, b bytea, i interval, x xml, c char(3), v bit(3));
INSERT INTO store.kinds VALUES (1, ROW(2, 3), '[1,5)', '{[1,3),[5,7)}', '8b9f0bd0-4d3a-4e55-8a70-8f4fa5ae9a01', '\xdead', '1 day 2 hours', '<a/>', 'x', B'101');
CREATE TABLE store.mail (owner text, body text);
INSERT INTO store.mail VALUES ('ann', 'for ann'), ('bob', 'for bob');
ALTER TABLE store.mail ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON store.mail USING (owner = aidb.principal());
CREATE TABLE store.events (id integer, day date NOT NULL) PARTITION BY RANGE (day);
CREATE TABLE store.events_2024 PARTITION OF store.events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO store.events SELECT g, date '2024-01-01' + g FROM generate_series(1, 100) g;
CREATE VIEW store.open_goods AS SELECT id, title, stock FROM store.goods WHERE state = 'new' WITH CHECK OPTION;
CREATE MATERIALIZED VIEW store.summary AS SELECT count(*) AS n FROM store.sales;
CREATE TABLE store.scratch (k integer PRIMARY KEY, v text);
GRANT SELECT, INSERT, UPDATE, DELETE ON store.customers, store.sales, store.journal, store.kinds, store.mail, store.open_goods, store.events TO guest;
GRANT ALL ON store.scratch TO guest;
GRANT SELECT ON store.summary TO guest;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA store TO guest;
RESET ROLE;
