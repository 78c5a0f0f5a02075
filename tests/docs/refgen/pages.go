package refgen

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"aidb/tests/cluster"
)

// group is a chapter of functions.md. A function that no chapter names ends up in the last one.
type group struct {
	title, text string
	functions   []string
}

var groups = []group{
	{"Agents", "What is wrong with a request is a row, not an exception: a script of many calls is not stopped half way.",
		[]string{"create_agent", "update_agent", "delete_agent", "list_agents", "explain_agent"}},
	{"Conversations", "", []string{"agent_converse", "start_agent_session", "get_conversation", "get_message"}},
	{"Models", "These raise.", []string{"create_model", "validate_model", "get_model", "list_models", "list_model_providers", "delete_model", "generate_text", "generate_text_batch"}},
	{"Tools", "Tools of one's own, `run_tool`, which runs any tool, and the functions behind those of [tools.md](tools.md). These raise.",
		[]string{"create_sql_tool", "update_sql_tool", "delete_tool", "run_tool", "run_sql_query", "execute_sql", "catalog_list_schemas", "catalog_list_objects", "catalog_get_object_details", "catalog_list_relations", "sleep"}},
	{"Actions", "How a person answers what an agent has proposed: see [actions.md](actions.md). These raise.",
		[]string{"confirm_action", "reject_action", "undo_action", "expire_actions", "classify_tool", "set_confirmation_word"}},
	{"Governance", "These raise. Roles and grants are in [roles.md](roles.md).",
		[]string{"create_purpose", "update_purpose", "delete_purpose", "check_purpose", "check_role", "verify_decisions"}},
	{"Who is asking", "For the policies and views of applications: these return something only while a tool call runs.",
		[]string{"principal", "conversation_id", "agent_name"}},
	{"Builders", "They put arguments into the JSON that other functions take.",
		[]string{"completions_config", "max_tokens_config", "inference_config", "output_type", "output_field", "params", "param", "tool_params", "tool_param"}},
	{"Others", "", nil},
}

const generated = "<!-- Written by `make docs` from the comments in the catalog and tests/docs/refgen/examples.sql: change those. -->\n\n"

// Pages returns the generated pages by file name. The server must have the extension in the database.
func Pages(ctx context.Context, c *cluster.Cluster, database string) (map[string]string, error) {
	conn, err := c.Connect(ctx, "postgres", database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	functions, err := loadFunctions(ctx, conn)
	if err != nil {
		return nil, err
	}
	relations, err := loadRelations(ctx, conn)
	if err != nil {
		return nil, err
	}
	enums, err := loadEnums(ctx, conn)
	if err != nil {
		return nil, err
	}
	tools, err := loadTools(ctx, conn)
	if err != nil {
		return nil, err
	}
	examples, err := runExamples(ctx, c)
	if err != nil {
		return nil, err
	}
	unused := map[string]bool{}
	for name := range examples {
		unused[name] = true
	}
	take := func(name string) example {
		delete(unused, name)
		return examples[name]
	}
	pages := map[string]string{
		"functions.md": functionsPage(functions, take),
		"tools.md":     toolsPage(tools, take),
		"views.md":     viewsPage(relations, enums, take),
	}
	for name := range unused {
		return nil, fmt.Errorf("examples.sql has an example for %s, which does not exist", name)
	}
	return pages, nil
}

// chapter puts each function into the first group that names it, and the rest into the last.
func chapter(list []function) map[string][]function {
	chapters := map[string][]function{}
	for _, f := range list {
		at := slices.IndexFunc(groups, func(g group) bool { return slices.Contains(g.functions, f.Name) })
		if at < 0 {
			at = len(groups) - 1
		}
		chapters[groups[at].title] = append(chapters[groups[at].title], f)
	}
	for _, g := range groups {
		slices.SortStableFunc(chapters[g.title], func(x, y function) int {
			return slices.Index(g.functions, x.Name) - slices.Index(g.functions, y.Name)
		})
	}
	return chapters
}

func functionsPage(list []function, take func(string) example) string {
	var b strings.Builder
	b.WriteString("# Functions\n\n" + generated +
		"The functions of schema `aidb`. Errors that a function raises are given by their SQLSTATE; all texts are in\n" +
		"[errors.md](errors.md). The examples form one session of psql that was run when this page was made; ids and times are\n" +
		"replaced by others.\n")
	chapters := chapter(list)
	for _, g := range groups {
		if len(chapters[g.title]) == 0 {
			continue
		}
		links := make([]string, 0, len(chapters[g.title]))
		for _, f := range chapters[g.title] {
			links = append(links, fmt.Sprintf("[%s](#aidb%s)", f.Name, f.Name))
		}
		fmt.Fprintf(&b, "\n- **%s**: %s", g.title, strings.Join(links, ", "))
	}
	b.WriteString("\n")
	for _, g := range groups {
		if len(chapters[g.title]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", g.title)
		if g.text != "" {
			fmt.Fprintf(&b, "\n%s\n", g.text)
		}
		for _, f := range chapters[g.title] {
			writeFunction(&b, f, take("aidb."+f.Name))
		}
	}
	return b.String()
}

func writeFunction(b *strings.Builder, f function, e example) {
	fmt.Fprintf(b, "\n### aidb.%s\n\n```sql\n%s\n```\n\n", f.Name, signature(f))
	entry := explain(f)
	fmt.Fprintf(b, "%s\n", entry.text)
	if len(entry.arguments) > 0 {
		b.WriteString("\n")
		for _, a := range entry.arguments {
			fmt.Fprintf(b, "- %s\n", a)
		}
	}
	if len(entry.columns) > 0 {
		fmt.Fprintf(b, "\nReturned columns: %s\n", strings.Join(entry.columns, " "))
	}
	if entry.errors != "" {
		fmt.Fprintf(b, "\n*Errors:* %s\n", entry.errors)
	}
	fmt.Fprintf(b, "\n*Privileges:* EXECUTE for %s.", names(f.Granted))
	if entry.privileges != "" {
		fmt.Fprintf(b, " %s", entry.privileges)
	}
	if f.Symbol == "aidb_go_call" || (f.Symbol == "aidb_owner_call" && f.Volatile) {
		b.WriteString(" Cannot be called from inside a tool call.")
	}
	b.WriteString("\n")
	writeExample(b, e)
}

func writeExample(b *strings.Builder, e example) {
	if e.SQL != "" {
		fmt.Fprintf(b, "\n```sql\n%s\n```\n```text\n%s\n```\n", e.SQL, e.Output)
	}
}

func names(roles []string) string {
	if len(roles) == 0 {
		return "superusers only"
	}
	quoted := make([]string, len(roles))
	for i, r := range roles {
		quoted[i] = "`" + r + "`"
		if r == "everybody" {
			quoted[i] = r
		}
	}
	return strings.Join(quoted, ", ")
}

var casts = regexp.MustCompile(`::[a-z][a-z0-9 ]*(\(\d+\))?(\[\])?$`)

// signature is the function as it would be declared, on one line when it fits.
func signature(f function) string {
	args := make([]string, len(f.Args))
	for i, a := range f.Args {
		args[i] = a.Name + " " + a.Type
		if a.Mode == "v" {
			args[i] = "VARIADIC " + args[i]
		}
		if a.Default != "" {
			args[i] += " DEFAULT " + casts.ReplaceAllString(a.Default, "")
		}
	}
	line := fmt.Sprintf("aidb.%s(%s) RETURNS %s", f.Name, strings.Join(args, ", "), f.Result)
	if len(line) <= 100 {
		return line
	}
	result := f.Result
	if len(result) > 100 {
		result = strings.Replace(strings.ReplaceAll(result, ", ", ",\n    "), "TABLE(", "TABLE(\n    ", 1)
	}
	if len(args) == 0 {
		return fmt.Sprintf("aidb.%s()\nRETURNS %s", f.Name, result)
	}
	return fmt.Sprintf("aidb.%s(\n    %s\n)\nRETURNS %s", f.Name, strings.Join(args, ",\n    "), result)
}

// entry is a comment taken apart: comments are written so that the parts can be told.
type entry struct {
	text, errors, privileges string
	arguments, columns       []string
}

// explain sorts the sentences of a function's comment: "name: …" and "name, other: …" are about arguments or result columns,
// "Raises …" about errors, "Privileges: …" is the last.
func explain(f function) entry {
	var e entry
	comment := f.Comment
	if at := strings.Index(comment, "Privileges: "); at >= 0 {
		rest := strings.TrimSuffix(strings.TrimSpace(comment[at+len("Privileges: "):]), ".")
		comment = strings.TrimSpace(comment[:at])
		// The grants come from the catalog; what the comment says besides them is kept.
		for range f.Granted {
			for _, r := range f.Granted {
				rest = strings.TrimLeft(strings.TrimPrefix(rest, r), ",; ")
			}
		}
		if rest != "" {
			e.privileges = capital(rest) + "."
		}
	}
	var text []string
	afterArgument := false
	for _, s := range sentences(comment) {
		if about, rest, ok := aboutNames(s, f.Args); ok {
			e.arguments, afterArgument = append(e.arguments, about+": "+rest), true
			continue
		}
		if about, rest, ok := aboutNames(s, f.Columns); ok {
			e.columns = append(e.columns, about+": "+rest)
			continue
		}
		if n := len(e.arguments); n > 0 && afterArgument && strings.HasPrefix(s, "With") { // "With false it is …" goes on about it
			e.arguments[n-1] += " " + s
			continue
		}
		afterArgument = false
		if strings.HasPrefix(s, "Raises ") {
			e.errors = strings.TrimSpace(e.errors + " " + s)
			continue
		}
		text = append(text, s)
	}
	e.text = strings.Join(text, " ")
	return e
}

var sentenceEnd = regexp.MustCompile(`\. +`)

func sentences(s string) []string {
	var list []string
	from := 0
	for _, at := range sentenceEnd.FindAllStringIndex(s, -1) {
		list = append(list, s[from:at[0]+1])
		from = at[1]
	}
	if from < len(s) {
		list = append(list, s[from:])
	}
	return list
}

var subject = regexp.MustCompile(`^([a-z_]+(?:, [a-z_]+)*)( \([a-z ]+\))?: `)

func aboutNames(s string, args []argument) (about, rest string, ok bool) {
	m := subject.FindStringSubmatch(s)
	if m == nil {
		return "", "", false
	}
	var quoted []string
	for name := range strings.SplitSeq(m[1], ", ") {
		if !slices.ContainsFunc(args, func(a argument) bool { return a.Name == name }) {
			return "", "", false
		}
		quoted = append(quoted, "`"+name+"`")
	}
	return strings.Join(quoted, ", ") + m[2], s[len(m[0]):], true
}

func capital(s string) string {
	if s == "" || strings.HasPrefix(s, "aidb") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func toolsPage(list []nativeTool, take func(string) example) string {
	var b strings.Builder
	b.WriteString("# Tools\n\n" + generated +
		"What `aidb.tools` lists is what an agent may be given in `tools`, and what `aidb.run_tool` runs. A tool is a call of the\n" +
		"function named with it, in the sandbox of [security.md](security.md). The role that it runs as needs EXECUTE on that\n" +
		"function and nothing else of aidb: no USAGE on a schema, no table. The caller of an agent without a purpose is that\n" +
		"role itself. `sleep` needs no grant and is offered to every agent without being listed.\n\n" +
		"These are the native tools. Users add their own with `aidb.create_sql_tool`: a stored statement with parameters, which\n" +
		"runs in the same sandbox and needs no grant but those on what it touches; or they bring in those of MCP servers with\n" +
		"`aidb.import_mcp_tools` ([mcp.md](../design/mcp.md)).\n\n" +
		"Results are JSON texts: an array of one object a row, `{\"rows_affected\": n}`, or, when something was cut,\n" +
		"`{\"truncated\": true, \"note\": …, \"rows\": […]}` (`aidb.max_tool_rows`, `aidb.max_tool_bytes`).\n\n" +
		"| tool | read-only | purpose |\n|---|---|---|\n")
	for _, t := range list {
		first, _, _ := strings.Cut(t.Description, ". ")
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", t.Name, t.Name, yes(t.ReadOnly), cell(strings.TrimSuffix(first, ".")))
	}
	for _, t := range list {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", t.Name, t.Description)
		if len(t.Params) == 0 {
			b.WriteString("No arguments.\n")
		} else {
			b.WriteString("| argument | type | required | default | meaning |\n|---|---|---|---|---|\n")
			for _, p := range t.Params {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.Name, p.Type, yes(p.Required), jsonText(p.Default), cell(p.Description))
			}
		}
		fmt.Fprintf(&b, "\nRead-only: %s. Function: `%s`.\n", yes(t.ReadOnly), t.Function)
		writeExample(&b, take(t.Name))
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func jsonText(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return "`" + string(text) + "`"
}

func viewsPage(relations []relation, enums []enum, take func(string) example) string {
	var b strings.Builder
	b.WriteString("# Views, tables and types\n\n" + generated +
		"What can be read: the views of schema `aidb`, and of `aidb_internal` the tables that are granted to somebody. All of\n" +
		"them are read-only; history shows only what the reader may see ([security.md](security.md)).\n\n")
	for _, r := range relations {
		fmt.Fprintf(&b, "- [%s](#%s)\n", r.Name, strings.ReplaceAll(r.Name, ".", ""))
	}
	for _, r := range relations {
		fmt.Fprintf(&b, "\n## %s\n\n", r.Name)
		comment, _, _ := strings.Cut(r.Comment, "Privileges: ")
		fmt.Fprintf(&b, "%s\n\n| column | type | meaning |\n|---|---|---|\n", strings.TrimSpace(comment))
		for _, c := range r.Columns {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.Type, cell(c.Comment))
		}
		fmt.Fprintf(&b, "\n*Privileges:* SELECT for %s.\n", names(r.Granted))
		writeExample(&b, take(r.Name))
	}
	b.WriteString("\n# Types\n")
	for _, e := range enums {
		what := "Values, in order"
		if e.Composite {
			what = "Fields"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s: `%s`.\n", e.Name, e.Comment, what, strings.Join(e.Labels, "`, `"))
	}
	return b.String()
}
