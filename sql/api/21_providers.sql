-- What can answer for a model.
--
--   canonical  the provider whose implementation and config rules apply: an alias names another row
CREATE OR REPLACE VIEW aidb_internal.providers (name, canonical, functions, description, options) AS
VALUES
    ('openai_completions', 'openai_completions', ARRAY['aidb-openai-text-completion'],
     'Any server with an OpenAI-compatible /v1/chat/completions, with native tool calls.',
     ARRAY['url=https://api.openai.com/v1']),
    ('completions', 'openai_completions', ARRAY['aidb-openai-text-completion'],
     'Older name of openai_completions.',
     ARRAY['url=https://api.openai.com/v1']),
    ('openai_responses', 'openai_responses', ARRAY['aidb-openai-responses'],
     'Any server with the Responses API (/v1/responses), with native tool calls.',
     ARRAY['url=https://api.openai.com/v1']),
    ('anthropic_messages', 'anthropic_messages', ARRAY['aidb-anthropic-messages'],
     'Any server with the Messages API (/v1/messages), with native tool calls.',
     ARRAY['url=https://api.anthropic.com/v1']),
    ('dummy', 'dummy', ARRAY['aidb-dummy-text-completion'],
     'Replays the replies scripted in its config, without any network. For tests and demonstrations.',
     ARRAY[]::text[]),
    ('replay', 'replay', ARRAY['aidb-dummy-text-completion'],
     'Answers from a recorded conversation, without any network, and fails with the difference when a request is not the recorded one.',
     ARRAY[]::text[]);
COMMENT ON VIEW aidb_internal.providers IS
    'Model providers, with the implementation behind each.';
REVOKE ALL ON aidb_internal.providers FROM PUBLIC;

