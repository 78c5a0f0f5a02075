-- The list of native tools as one document: what a session reads with its first call.
CREATE TABLE aidb_internal.native_tool_list (
    whole boolean NOT NULL DEFAULT true,
    tools jsonb NOT NULL,
    CONSTRAINT native_tool_list_pkey PRIMARY KEY (whole),
    CONSTRAINT native_tool_list_whole_check CHECK (whole)
);
COMMENT ON TABLE aidb_internal.native_tool_list IS
    'The rows of aidb_internal.native_tools as a JSON array in one row, which is found by its key and needs no plan. Written by the extension''s scripts.';
REVOKE ALL ON aidb_internal.native_tool_list FROM PUBLIC;

