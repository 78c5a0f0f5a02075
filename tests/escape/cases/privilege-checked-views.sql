-- class: privilege
-- caller: member
-- mode: role
-- must: writing through a view, a check option, a trigger of it or a rule does no more than the role itself may
-- setup:
SET ROLE keeper;
CREATE VIEW store.writable AS SELECT id, line FROM store.ledger WHERE id < 5 WITH CHECK OPTION;
GRANT SELECT ON store.writable TO guest;
CREATE TABLE store.audited (a integer);
CREATE RULE note AS ON INSERT TO store.audited DO ALSO NOTIFY audited;
GRANT INSERT, SELECT ON store.audited TO guest;
-- setup:
SET ROLE guest;
CREATE TABLE guest.inbox (a integer);
CREATE RULE steal AS ON INSERT TO guest.inbox DO ALSO UPDATE store.ledger SET line = 'x';
CREATE VIEW guest.fake AS SELECT 1 AS a;
CREATE RULE instead AS ON INSERT TO guest.fake DO INSTEAD DELETE FROM store.ledger;
CREATE RULE told AS ON UPDATE TO guest.fake DO INSTEAD NOTIFY told;
CREATE FUNCTION guest.instead_of() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN DELETE FROM store.ledger; RETURN OLD; END $f$;
CREATE TRIGGER instead_of INSTEAD OF DELETE ON guest.fake FOR EACH ROW EXECUTE FUNCTION guest.instead_of();
-- attacks:
INSERT INTO store.writable VALUES (4, 'x')
UPDATE store.writable SET line = 'x'
INSERT INTO store.audited VALUES (1)
INSERT INTO guest.inbox VALUES (1)
INSERT INTO guest.fake VALUES (1)
UPDATE guest.fake SET a = 2
DELETE FROM guest.fake
-- check:
SELECT judge.none_fine('attack') AND NOT judge.breached() AND (SELECT count(*) = 10 FROM store.ledger)
