-- Actions: tool calls that wait for a person. An action is a plan of one to ten steps that an agent proposed, with the
-- preview that the person sees. extension/internal/approval says how its status moves.

-- What governance says of a tool, whatever kind of tool it is and whatever its owner or its server says. By name, so that
-- a tool that is deleted and made anew does not shake off its class.
CREATE TABLE aidb_internal.tool_classes (
    tool text NOT NULL,
    risk text NOT NULL,
    classified_by text NOT NULL,
    classified_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT tool_classes_pkey PRIMARY KEY (tool),
    CONSTRAINT tool_classes_risk_check CHECK (risk IN ('read', 'safe', 'confirm', 'forbidden'))
);
COMMENT ON TABLE aidb_internal.tool_classes IS
    'Risk classes that aidb.classify_tool has set. Read them in aidb.tools.';
REVOKE ALL ON aidb_internal.tool_classes FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.tool_classes', '');

CREATE TABLE aidb_internal.actions (
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    root_conversation_id uuid NOT NULL,
    task_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    agent text NOT NULL,
    root_agent_id uuid NOT NULL,
    purpose text,
    caller text NOT NULL,
    principal text NOT NULL,
    session_user_name text NOT NULL,
    approvers text[] NOT NULL DEFAULT '{}',
    steps jsonb NOT NULL,
    preview jsonb NOT NULL,
    proof jsonb NOT NULL,
    guards jsonb NOT NULL DEFAULT '[]',
    status text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    decided_at timestamptz,
    decided_by text,
    outcome jsonb,
    told boolean NOT NULL DEFAULT false,
    CONSTRAINT actions_pkey PRIMARY KEY (id)
);
COMMENT ON TABLE aidb_internal.actions IS
    'Every action that was ever proposed. Read it through aidb.pending_actions and aidb.action_history.';
COMMENT ON COLUMN aidb_internal.actions.root_conversation_id IS
    'The conversation with the person: that of the agent they called, where a delegate of it proposed the action.';
COMMENT ON COLUMN aidb_internal.actions.root_agent_id IS
    'The agent that the person called; its purpose is the one that counts.';
COMMENT ON COLUMN aidb_internal.actions.purpose IS
    'The purpose that the tools ran under when the action was proposed; NULL: as their caller.';
COMMENT ON COLUMN aidb_internal.actions.approvers IS
    'Roles of each of which somebody else than the requester must be the one who confirms; empty: the requester confirms.';
COMMENT ON COLUMN aidb_internal.actions.proof IS
    'For each step: the digest of the tool''s definition and of the policies, and what the preview found, to compare with. Not for showing.';
COMMENT ON COLUMN aidb_internal.actions.status IS
    'pending, then done, stopped, rejected, expired or void; a done or stopped action may become undone.';
COMMENT ON COLUMN aidb_internal.actions.guards IS
    'The sessions of temporal policies that its steps have to pass: array of {conversation, policy}.';
COMMENT ON COLUMN aidb_internal.actions.outcome IS
    'What came of each step.';
COMMENT ON COLUMN aidb_internal.actions.told IS
    'The model knows how it ended: that was said with a later prompt.';
REVOKE ALL ON aidb_internal.actions FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.actions', '');

-- What waits, and what has ended without the model knowing: there are never many.
CREATE INDEX actions_open_idx ON aidb_internal.actions (root_conversation_id) WHERE NOT told;
CREATE INDEX actions_pending_idx ON aidb_internal.actions (caller, principal) WHERE status = 'pending';
CREATE INDEX actions_expiry_idx ON aidb_internal.actions (expires_at) WHERE status = 'pending';
CREATE INDEX actions_task_idx ON aidb_internal.actions (task_id) WHERE status = 'pending';

-- Apart and not in pg_extension_config_dump: nobody is granted anything on it, and a dump must not hold what confirms.
-- No constraint beyond the key, because the message of a violated one prints the row.
CREATE TABLE aidb_internal.action_tokens (
    action_id uuid NOT NULL,
    token text,
    CONSTRAINT action_tokens_pkey PRIMARY KEY (action_id),
    CONSTRAINT action_tokens_action_fkey FOREIGN KEY (action_id) REFERENCES aidb_internal.actions (id) ON DELETE CASCADE
);
COMMENT ON TABLE aidb_internal.action_tokens IS
    'Tokens of actions that wait. Seen through aidb.pending_actions only, by whom they belong to; gone as soon as the action is decided. Those of expired ones stay, so that confirm_action can say so.';
REVOKE ALL ON aidb_internal.action_tokens FROM PUBLIC;

-- What reached outside for a person who has said yes, written by the background worker before it is sent, in a transaction of
-- its own: the confirming one may be rolled back, and the call cannot. No foreign key, because the action may be rolled back,
-- too, and because a lock of it must not be waited for. Not in pg_extension_config_dump: what waits cannot be confirmed
-- after a restore.
CREATE TABLE aidb_internal.sent_steps (
    action_id uuid NOT NULL,
    step integer NOT NULL,
    sent boolean NOT NULL,
    at timestamptz NOT NULL,
    id uuid NOT NULL,
    CONSTRAINT sent_steps_pkey PRIMARY KEY (action_id, step, id)
);
COMMENT ON TABLE aidb_internal.sent_steps IS
    'Steps of actions that were sent to an MCP server when their action was confirmed. Only the extension reads and writes it; a row goes when its action is decided.';
COMMENT ON COLUMN aidb_internal.sent_steps.sent IS
    'true: it is about to leave. false: it certainly never left, which takes back one of the former.';
REVOKE ALL ON aidb_internal.sent_steps FROM PUBLIC;

-- Words that administrators have added to those that come with the extension, or (allowed false) taken away from them.
CREATE TABLE aidb_internal.confirmation_words (
    language text NOT NULL,
    word text NOT NULL,
    kind text NOT NULL,
    CONSTRAINT confirmation_words_pkey PRIMARY KEY (language, word),
    CONSTRAINT confirmation_words_kind_check CHECK (kind IN ('yes', 'filler', 'none'))
);
COMMENT ON TABLE aidb_internal.confirmation_words IS
    'Changes to the words that confirm, made by aidb.set_confirmation_word. Read the whole in aidb.confirmation_words.';
REVOKE ALL ON aidb_internal.confirmation_words FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.confirmation_words', '');
