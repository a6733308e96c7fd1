package journal

import "strings"

// Identities returns the columns by which a verification names the rows of each table.
func Identities() map[string][]string {
	out := map[string][]string{}
	for _, t := range tables {
		if t.identity == nil {
			continue
		}
		columns := strings.Split(t.columns, ", ")
		out[t.name] = []string{columns[t.day]}
		for _, i := range t.identity {
			out[t.name] = append(out[t.name], columns[i])
		}
	}
	return out
}
