-- class: plant
-- caller: superuser
-- mode: role
-- must: the same for trigger functions, which guest's own INSERT compiles
-- setup:
SET check_function_bodies = off;
SET ROLE keeper;
CREATE FUNCTION store.tidy() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE s state;
BEGIN s := NEW.state; NEW.title := concat(NEW.title, ' ', s); RETURN NEW; END $f$;
CREATE TRIGGER tidy BEFORE INSERT ON store.goods FOR EACH ROW EXECUTE FUNCTION store.tidy();
SET ROLE guest;
CREATE DOMAIN guest.state AS text CHECK (guest.payload('trigger type'));
-- before:
SET search_path = "$user", store
-- attack:
INSERT INTO store.goods (title) VALUES ('theirs')
-- after:
INSERT INTO store.goods (title) VALUES ('mine') RETURNING title
-- check:
SELECT judge.output('after') = 'mine new' AND judge.fine('attack') AND NOT judge.breached()
