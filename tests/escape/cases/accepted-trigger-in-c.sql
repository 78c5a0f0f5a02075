-- class: accepted
-- caller: superuser
-- mode: role
-- needs: tcn
-- must: a trigger function in C is not looked at, and does what its author meant: tcn's tells listeners of a change
-- setup:
CREATE TRIGGER told AFTER INSERT ON guest.pad FOR EACH ROW EXECUTE FUNCTION triggered_change_notification('news');
-- attack:
INSERT INTO guest.pad (note) VALUES ('told')
-- check:
SELECT judge.fine('attack')
