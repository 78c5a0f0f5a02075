-- class: txn
-- caller: superuser
-- mode: readonly
-- txn: block
-- digest: off
-- must: isolation, read-only and deferrable are for the caller to choose and stay as chosen
-- before:
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, DEFERRABLE
-- attacks:
SELECT count(*) AS n FROM store.goods
SELECT current_setting('transaction_isolation') AS i, current_setting('transaction_read_only') AS r
SELECT 1/0 AS v
-- after:
SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only'), current_setting('transaction_deferrable')
-- after:
INSERT INTO safe.breach VALUES ('caller', 'can write')
-- check:
SELECT judge.output('after') = 'serializable|off|on' AND judge.output('attack', 2) = '[{"i": "serializable", "r": "on"}]' AND judge.fine('after', 2)
