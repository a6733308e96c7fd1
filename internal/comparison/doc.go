// Package comparison compares rows of Postgres with what records in Kafka make of them, so that whoever can write Postgres
// alone is found (docs/design/rights.md, "The read model"). A table says how records make its rows and which rows they
// demand (Table); Verify reads both sides, fenced by the positions of the sink that writes the table.
package comparison
