-- class: text
-- caller: member
-- mode: readonly
-- must: placeholders of the model's script inside the statement are only text
-- attack:
SELECT '${prompt} ${agent} $1 %s {{x}}' AS v
-- check:
SELECT judge.output('attack') = '[{"v": "${prompt} ${agent} $1 %s {{x}}"}]'
