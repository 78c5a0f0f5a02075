package fakemodel

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Explorer is the brain of the demo: no language model, but it does what one does with an unknown database, and it knows
// only what the conversation that it is sent has told it. It asks for the schemas, for the tables of those, for the
// columns and keys of those, builds queries from what it found and from the words of the question, and answers with the
// numbers that came back. A question that it cannot relate to the tables is answered with how many rows they have.
func Explorer(r Request) Reply {
	for _, needed := range []string{"catalog_list_schemas", "catalog_list_objects", "catalog_get_object_details", "run_sql_query"} {
		if !r.Offers(needed) {
			return Say("I can only explore with the catalog tools and run_sql_query, and " + needed + " is not among my tools.")
		}
	}
	turn := r.Turn()
	switch {
	case len(of(turn, "catalog_list_schemas")) == 0:
		return Call("catalog_list_schemas", nil)
	case len(of(turn, "catalog_list_objects")) == 0:
		return listTables(turn)
	case len(of(turn, "catalog_get_object_details")) == 0:
		return describeTables(turn)
	case len(of(turn, "run_sql_query")) == 0:
		return query(r.LastUser(), turn)
	}
	return report(of(turn, "run_sql_query"))
}

// The explorer looks at no more than this many schemas and tables: it is a demo, not a crawler.
const (
	maxSchemas = 4
	maxTables  = 12
)

func of(turn []Exchange, tool string) []Exchange {
	var found []Exchange
	for _, e := range turn {
		if e.Tool == tool {
			found = append(found, e)
		}
	}
	return found
}

// rows reads a tool's result: an array of row objects, or one inside an object when it was cut.
func rows[T any](result string) []T {
	decode := func(into any) error {
		d := json.NewDecoder(strings.NewReader(result))
		d.UseNumber() // 283405.60 is to stay as it came
		return d.Decode(into)
	}
	var list []T
	if decode(&list) == nil {
		return list
	}
	var cut struct {
		Rows []T `json:"rows"`
	}
	_ = decode(&cut)
	return cut.Rows
}

type object struct {
	Schema     string   `json:"schema_name"`
	Name       string   `json:"object_name"`
	Type       string   `json:"object_type"`
	Columns    []column `json:"columns"`
	PrimaryKey []string `json:"primary_key"`
	Foreign    []struct {
		Columns    []string `json:"columns"`
		References string   `json:"references"`
		Referenced []string `json:"referenced_columns"`
	} `json:"foreign_keys"`
	Checks []string `json:"check_constraints"`
}

type column struct{ Name, Type string }

func (o *object) path() string { return o.Schema + "." + o.Name }

func listTables(turn []Exchange) Reply {
	var calls []Reply
	for _, s := range rows[object](of(turn, "catalog_list_schemas")[0].Result) {
		if len(calls) < maxSchemas {
			calls = append(calls, Call("catalog_list_objects", map[string]any{"schema": s.Schema, "object_type": "table"}))
		}
	}
	if len(calls) == 0 {
		return Say("I see no schema that I may use.")
	}
	return Calls(calls...)
}

func describeTables(turn []Exchange) Reply {
	var calls []Reply
	for _, listing := range of(turn, "catalog_list_objects") {
		for _, o := range rows[object](listing.Result) {
			if len(calls) < maxTables {
				calls = append(calls, Call("catalog_get_object_details", map[string]any{"schema": o.Schema, "object_name": o.Name}))
			}
		}
	}
	if len(calls) == 0 {
		return Say("I see no table that I may read.")
	}
	return Calls(calls...)
}

func query(question string, turn []Exchange) Reply {
	var tables []object
	for _, e := range of(turn, "catalog_get_object_details") {
		tables = append(tables, rows[object](e.Result)...)
	}
	var calls []Reply
	for _, sql := range plan(question, tables) {
		calls = append(calls, Query(sql))
	}
	if len(calls) == 0 {
		return Say("The tables have no columns that I may read.")
	}
	return Calls(calls...)
}

// ranking matches the shape of the queries that plan builds, to put their results into words.
var ranking = regexp.MustCompile(`^SELECT \w+\.(\w+) AS (\w+), `)

// report puts what the queries returned into words, and nothing else.
func report(queries []Exchange) Reply {
	var sentences []string
	for _, q := range queries {
		var asked struct {
			Query string `json:"query"`
		}
		_ = json.Unmarshal([]byte(q.Arguments), &asked)
		list := rows[map[string]any](q.Result)
		m := ranking.FindStringSubmatch(asked.Query)
		switch {
		case list == nil:
			sentences = append(sentences, "A query failed: "+q.Result)
		case m == nil:
			for _, row := range list {
				sentences = append(sentences, fmt.Sprintf("%v has %v rows.", row["table"], row["rows"]))
			}
		default:
			var parts []string
			for _, row := range list {
				parts = append(parts, fmt.Sprintf("%v (%v)", row[m[2]], row["total"]))
			}
			note := ""
			if strings.Contains(asked.Query, "<> 'returned'") {
				note = ", returned orders left out"
			}
			sentences = append(sentences, fmt.Sprintf("Top %s by revenue%s: %s.", strings.ReplaceAll(m[2], "_", " "), note, strings.Join(parts, ", ")))
		}
	}
	return Say(strings.Join(sentences, " "))
}
