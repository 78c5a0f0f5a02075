package fakemodel

import (
	"fmt"
	"slices"
	"strings"
)

// plan builds the explorer's queries: the measure is quantity times price, or an amount, of some table; the labels are
// text columns of that table or of those its foreign keys lead to, chosen by the words of the question.
func plan(question string, tables []object) []string {
	words := strings.FieldsFunc(strings.ToLower(question), func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' })
	for i := range tables {
		measure := measureOf(&tables[i])
		if measure == "" {
			continue
		}
		var queries []string
		for _, s := range withoutReturned(reach(&tables[i], tables)) {
			for _, c := range s.table.Columns {
				if isText(c) && asked(words, s.table, c) {
					queries = append(queries, ranked(&tables[i], measure, s, c, limit(words)))
				}
			}
		}
		if len(queries) > 0 {
			return queries
		}
	}
	return counts(tables)
}

// measureOf is the expression that says what a row is worth, or "".
func measureOf(o *object) string {
	quantity, price := "", ""
	for _, c := range o.Columns {
		switch {
		case strings.Contains(c.Name, "quantity") || c.Name == "qty":
			quantity = c.Name
		case strings.Contains(c.Name, "price") || c.Name == "amount" || c.Name == "total":
			price = c.Name
		}
	}
	if quantity == "" || price == "" {
		return ""
	}
	return fmt.Sprintf("f.%s * f.%s", quantity, price)
}

// stop is a table on the way from the measured one, with the joins that lead there.
type stop struct {
	table  *object
	alias  string
	joins  string
	filter string
}

// reach follows foreign keys, nearest tables first.
func reach(from *object, tables []object) []stop {
	stops := []stop{{table: from, alias: "f"}}
	seen := map[string]bool{from.path(): true}
	for i := 0; i < len(stops); i++ {
		here := stops[i]
		for _, fk := range here.table.Foreign {
			at := slices.IndexFunc(tables, func(o object) bool { return o.path() == fk.References })
			if at < 0 || seen[fk.References] || len(fk.Columns) != 1 {
				continue
			}
			seen[fk.References] = true
			next := stop{table: &tables[at], alias: fmt.Sprintf("t%d", len(stops))}
			next.joins = fmt.Sprintf("%s JOIN %s %s ON %s.%s = %s.%s", here.joins, fk.References, next.alias,
				next.alias, fk.Referenced[0], here.alias, fk.Columns[0])
			stops = append(stops, next)
		}
	}
	return stops
}

// withoutReturned leaves out, on every way, what the check constraint of a table beside the measured one says can have
// been returned.
func withoutReturned(stops []stop) []stop {
	for _, s := range stops[1:] {
		filter := notReturned(s)
		if filter == "" || strings.Count(s.joins, " JOIN ") != 1 {
			continue
		}
		for i := range stops {
			stops[i].filter = filter
			if !strings.Contains(stops[i].joins, s.joins) {
				stops[i].joins = s.joins + stops[i].joins
			}
		}
		break
	}
	return stops
}

func notReturned(s stop) string {
	for _, check := range s.table.Checks {
		for _, c := range s.table.Columns {
			if isText(c) && strings.Contains(check, "'returned'") && strings.Contains(check, "("+c.Name+" ") {
				return fmt.Sprintf(" WHERE %s.%s <> 'returned'", s.alias, c.Name)
			}
		}
	}
	return ""
}

func isText(c column) bool {
	return strings.HasPrefix(c.Type, "text") || strings.HasPrefix(c.Type, "character")
}

// asked says whether the question is about that column (category) or about what its name column names (customers).
func asked(words []string, o *object, c column) bool {
	if slices.Contains(words, c.Name) {
		return true
	}
	return c.Name == "name" && slices.Contains(words, o.Name)
}

func ranked(fact *object, measure string, s stop, c column, limit int) string {
	label := c.Name
	if label == "name" {
		label = strings.TrimSuffix(s.table.Name, "s")
	}
	group := s.alias + "." + c.Name
	if c.Name == "name" && len(s.table.PrimaryKey) == 1 {
		group += ", " + s.alias + "." + s.table.PrimaryKey[0] // two may have the same name
	}
	return fmt.Sprintf("SELECT %s.%s AS %s, round(sum(%s), 2) AS total FROM %s f%s%s GROUP BY %s ORDER BY total DESC LIMIT %d",
		s.alias, c.Name, label, measure, fact.path(), s.joins, s.filter, group, limit)
}

// limit is a number word of the question, or five.
func limit(words []string) int {
	for i, w := range []string{"two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"} {
		if slices.Contains(words, w) {
			return i + 2
		}
	}
	return 5
}

func counts(tables []object) []string {
	var parts []string
	for _, o := range tables {
		if len(o.Columns) > 0 {
			parts = append(parts, fmt.Sprintf(`SELECT '%s' AS "table", count(*) AS "rows" FROM %s`, o.path(), o.path()))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{strings.Join(parts, " UNION ALL ")}
}
