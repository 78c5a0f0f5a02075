-- class: privilege
-- caller: owner
-- mode: role
-- txn: block
-- must: the same for a trigger function and an inlined SQL function that the caller has used
-- setup:
SET ROLE keeper;
CREATE FUNCTION store.closed(text) RETURNS text LANGUAGE sql STABLE AS $f$ SELECT 'HUSH ' || $1 $f$;
REVOKE EXECUTE ON FUNCTION store.closed(text) FROM PUBLIC;
CREATE FUNCTION store.stamp() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.title := store.closed(NEW.title); RETURN NEW; END $f$;
CREATE TRIGGER stamp BEFORE INSERT ON store.goods FOR EACH ROW EXECUTE FUNCTION store.stamp();
CREATE FUNCTION store.looks() RETURNS text LANGUAGE plpgsql STABLE AS $f$ BEGIN RETURN (SELECT store.closed(min(title)) FROM store.goods); END $f$;
-- before:
INSERT INTO store.goods (title) VALUES ('mine'); SELECT store.looks()
-- attack:
INSERT INTO store.goods (title) VALUES ('theirs') RETURNING title
-- attack:
SELECT store.looks() AS v
-- check:
SELECT judge.none_fine('attack') AND judge.told() NOT LIKE '%HUSH%'
