-- Conversations that did not begin with a prompt: a fork of another one, or an import. Their own steps are in
-- aidb_internal.action_log like any other's; a fork's history is that of the conversation it comes from, up to a step of
-- it, and then its own. Nothing is copied.
CREATE TABLE aidb_internal.conversation_origins (
    conversation_id uuid NOT NULL,
    kind text NOT NULL,
    agent_id uuid NOT NULL,
    parent_conversation_id uuid,
    forked_from_message_id uuid,
    -- the last step of the parent that is part of it
    until_at timestamptz,
    until_id uuid,
    caller text NOT NULL,
    initiated_by text NOT NULL,
    principal text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT conversation_origins_pkey PRIMARY KEY (conversation_id),
    CONSTRAINT conversation_origins_kind_check CHECK (
        CASE kind
            WHEN 'fork' THEN coalesce(parent_conversation_id, forked_from_message_id, until_id) IS NOT NULL AND until_at IS NOT NULL
            ELSE kind = 'import' AND parent_conversation_id IS NULL
        END)
);
COMMENT ON TABLE aidb_internal.conversation_origins IS
    'Where forked and imported conversations come from, and whose they are. aidb.conversations shows it.';
REVOKE ALL ON aidb_internal.conversation_origins FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.conversation_origins', '');

