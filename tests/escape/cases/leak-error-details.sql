-- class: leak
-- caller: owner
-- mode: role
-- must: an error does not show rows that guest may not read
-- setup:
SET ROLE keeper;
CREATE TABLE store.accounts (name text UNIQUE, pin text CHECK (length(pin) = 4));
INSERT INTO store.accounts VALUES ('HUSH-name', '1234');
GRANT INSERT (name, pin), UPDATE (pin) ON store.accounts TO guest;
ALTER TABLE store.accounts ENABLE ROW LEVEL SECURITY;
CREATE POLICY nobody ON store.accounts FOR ALL TO guest USING (false) WITH CHECK (true);
-- attacks:
UPDATE store.accounts SET pin = 'x'
UPDATE store.accounts SET pin = 'x' WHERE 1 / (length(name) - 9) > 0
INSERT INTO store.accounts VALUES ('mine', '12')
INSERT INTO store.accounts VALUES ('mine', '1234') ON CONFLICT (name) DO UPDATE SET pin = accounts.name
-- check:
SELECT judge.told() NOT LIKE '%HUSH%'
