-- class: accepted
-- caller: owner
-- mode: role
-- must: lastval() of the caller follows the call's inserts, as after any function that inserts
-- before:
SELECT nextval('guest.pad_id_seq')
-- attack:
INSERT INTO store.goods (title) VALUES ('x') RETURNING id
-- after:
SELECT lastval() = currval('store.goods_id_seq')
-- check:
SELECT judge.output('after') = 't'
