// Package jobs is what people ask for in bulk: a job is a list of rows that another role carries out, one after the other.
// The tables are jobs and job_rows.
//
// A job is prepared first: its conditions and its end time are frozen, and its rows are listed (Store.Prepare). The person
// sees the count and starts it (Store.Start). A job of more than AloneAtMost rows waits for a second person (Store.Approve).
// A Runner carries it out. A row is one operation with its own row of the audit table, in one transaction with the note
// that it is done: a runner that dies goes on after its last row, and no row is done twice.
//
// The steps of people are signed as other decisions are (package decisions), over the conditions and all rows. The runner
// believes nothing else: a job that somebody has written into Postgres is refused. It asks before each row whether the
// person is in force and still may.
package jobs
