# The pieces of the extension's script, in the order in which they run: this list is its table of contents.
#
#   install   schemas, types, tables: run once, by CREATE EXTENSION. Changes to them after a release are upgrade steps.
#   api       functions, views, grants, comments: replayed as a whole by every upgrade, so each is CREATE OR REPLACE.

SQL_HEADER = sql/00_header.sql

SQL_INSTALL = \
    $(SQL_HEADER) \
    sql/install/10_roles.sql \
    sql/install/20_schemas.sql \
    sql/install/30_types.sql \
    sql/install/39_callers.sql \
    sql/install/40_agents.sql \
    sql/install/41_models.sql \
    sql/install/42_purposes.sql \
    sql/install/43_runs.sql \
    sql/install/44_decisions.sql \
    sql/install/45_telemetry.sql \
    sql/install/46_sql_tools.sql \
    sql/install/47_policies.sql \
    sql/install/48_actions.sql \
    sql/install/49_mcp.sql \
    sql/install/50_background.sql \
    sql/install/51_native_tools.sql \
    sql/install/53_conversations.sql \
    sql/install/54_redactions.sql \
    sql/install/55_quotas.sql \
    sql/install/56_retention.sql

SQL_API = \
    sql/api/10_identity.sql \
    sql/api/11_history_since.sql \
    sql/api/12_action_log.sql \
    sql/api/20_native_tools.sql \
    sql/api/21_providers.sql \
    sql/api/30_views.sql \
    sql/api/31_history_views.sql \
    sql/api/32_model_calls.sql \
    sql/api/33_policy_views.sql \
    sql/api/40_agent_checks.sql \
    sql/api/41_agents.sql \
    sql/api/42_conversations.sql \
    sql/api/43_purposes.sql \
    sql/api/44_task_tree.sql \
    sql/api/45_decisions.sql \
    sql/api/46_policies.sql \
    sql/api/47_policy_sessions.sql \
    sql/api/48_policy_reports.sql \
    sql/api/50_model_config.sql \
    sql/api/51_credentials.sql \
    sql/api/52_models.sql \
    sql/api/52_shared_limits.sql \
    sql/api/53_parameters.sql \
    sql/api/53_sql_tools.sql \
    sql/api/54_classes.sql \
    sql/api/55_actions.sql \
    sql/api/56_confirmation_words.sql \
    sql/api/54_forks.sql \
    sql/api/55_redactions.sql \
    sql/api/56_quotas.sql \
    sql/api/56_provider_configs.sql \
    sql/api/57_mcp_servers.sql \
    sql/api/58_mcp_tools.sql \
    sql/api/59_mcp_authorization.sql \
    sql/api/60_runs.sql \
    sql/api/61_checks.sql \
    sql/api/62_tool_allowed.sql \
    sql/api/63_background.sql \
    sql/api/64_background_wait.sql \
    sql/api/65_background_change.sql \
    sql/api/66_background_worker.sql \
    sql/api/66_background_aside.sql \
    sql/api/66_expiry.sql \
    sql/api/67_background_views.sql \
    sql/api/70_builders.sql \
    sql/api/80_catalog_list.sql \
    sql/api/81_catalog_details.sql \
    sql/api/91_log_partitions.sql \
    sql/api/92_retention.sql
