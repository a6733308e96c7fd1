package roles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"quittance/internal/analysts"
	"quittance/internal/clickhouse"
	"quittance/internal/postgres"
)

// Databases is what a client may do in Postgres and in ClickHouse, besides what every client may.
type Databases struct {
	// Rows are its rights in Postgres.
	Rows []postgres.Right
	// Journal are its rights in ClickHouse.
	Journal []clickhouse.Right
}

// DatabaseClient is a client of Postgres or ClickHouse that has rights of its own: a role, or commands.
type DatabaseClient struct {
	Name, Short string
	// Owner is true for the client that migrates. It owns all tables, so that it has no list of rights.
	Owner bool
	Databases
}

// DatabaseClients returns all clients of Postgres and ClickHouse with their rights. It is the one table of rights:
// `quittance grants`, deploy/postgres/grants.md, deploy/clickhouse/grants.md and the check at start are made from it. A
// client without rights in a database has no user there. In developer mode all clients may read the developer's clock,
// and commands move it.
func DatabaseClients(o Options) []DatabaseClient {
	var out []DatabaseClient
	for _, r := range Table() {
		out = append(out, DatabaseClient{Name: r.Name, Short: r.Short, Databases: r.Databases})
	}
	out = append(out,
		DatabaseClient{Name: ClientMigrate, Short: "`quittance migrate`, which makes and alters tables; it owns them", Owner: true},
		DatabaseClient{Name: ClientOperator, Short: "the other commands, for people; each has a login of its own", Databases: operatorDatabases()})
	for i := range out {
		c := &out[i]
		if c.Owner {
			continue // what is listed would be all that it may do with its own tables
		}
		if o.Clock != nil {
			c.Rows = rows(c.Rows, may("select", "developer_clock", "developer_clock_moves"))
			if c.Name == ClientOperator {
				c.Rows = rows(c.Rows, may("insert update", "developer_clock", "developer_clock_moves"))
			}
		}
		if len(c.Rows) > 0 {
			c.Rows = rows(c.Rows, may("select", "goose_db_version"))
		}
		if len(c.Journal) > 0 {
			c.Journal = append(mayInJournal("SELECT", "schema_migrations"), c.Journal...)
		}
	}
	return out
}

// databaseClient returns a client by its name.
func databaseClient(o Options, name string) DatabaseClient {
	all := DatabaseClients(o)
	return all[slices.IndexFunc(all, func(c DatabaseClient) bool { return c.Name == name })]
}

// may returns rights on tables. verbs are words such as "select insert", or "update(last_used_at)" for one column.
func may(verbs string, tables ...string) []postgres.Right {
	var out []postgres.Right
	for _, table := range tables {
		for _, word := range strings.Fields(verbs) {
			verb, columns, _ := strings.Cut(word, "(")
			for _, column := range strings.Split(strings.TrimSuffix(columns, ")"), ",") {
				out = append(out, postgres.Right{Verb: strings.ToUpper(verb), On: table, Column: column})
			}
		}
	}
	return out
}

// rows joins rights, sorted and each once.
func rows(rights ...[]postgres.Right) []postgres.Right {
	all := slices.SortedFunc(slices.Values(slices.Concat(rights...)), postgres.ByName)
	return slices.DeleteFunc(slices.Compact(all), func(r postgres.Right) bool { // a right on a table includes its columns
		return r.Column != "" && slices.Contains(all, postgres.Right{Verb: r.Verb, On: r.On})
	})
}

func mayInJournal(verb string, tables ...string) (out []clickhouse.Right) {
	for _, table := range tables {
		out = append(out, clickhouse.Right{Verb: verb, On: table})
	}
	return out
}

// Nouns that several clients name.
var (
	// registryOnly is the configuration: agencies, accounts with their sealed secrets, endpoints.
	registryOnly = may("select",
		"agencies", "applications", "cashin_access", "connector_accounts", "erp_settings", "fees", "link_code_epochs", "payout_modes", "platform", "receipt_keys", "registry_revision",
		"replaced_accounts", "row_manifest", "service_mappings", "services", "staff_manifest", "statement_accounts", "webhook_endpoints", "webhook_secrets")
	// registryRead is the configuration and the identities: hashes of keys, clerks, staff. Each role with master keys reads both.
	registryRead = rows(registryOnly, may("select", "api_keys", "cashin_pairs", "clerks", "staff", "staff_changes", "staff_contacts", "staff_invitations", "staff_issuers", "staff_passkeys", "staff_requests", "staff_roles"))
	// deliveriesRead is what tells a sink of deliveries what was sent before.
	deliveriesRead = may("select", "deliveries", "delivery_destinations", "delivery_positions")
	// deliveriesMade is what makes a delivery due.
	deliveriesMade = rows(may("select insert update", "deliveries", "delivery_destinations"), may("execute", "make_delivery_day(date)"))
	// sessionsRead is what a reader of sessions asks.
	sessionsRead = may("select", "cash_movements", "readmodel_positions", "session_events", "sessions")
	// sessionsWritten is what applies events of sessions.
	sessionsWritten = rows(
		may("select insert update", "erp_confirmations", "session_events", "sessions", "readmodel_positions"),
		may("insert", "cash_movements", "cashin_reversals"),
		may("select delete update(session_id)", "personal_keys"), may("select", "deliveries"))
	// batchesRead is what a reader of disbursement batches asks, batchesWritten what applies their events.
	batchesRead    = may("select", "disbursement_agencies", "disbursement_batches", "disbursement_lines", "disbursement_names", "disbursement_notes", "disbursement_steps", "disbursement_positions")
	batchesWritten = rows(may("select insert update", "disbursement_agencies", "disbursement_batches", "disbursement_lines", "disbursement_positions"),
		may("select insert", "disbursement_steps"), may("select delete", "disbursement_names", "disbursement_payees"), may("select update(keep_until)", "personal_keys"))
	// batchesImported is what an import writes beside its commands: keys of lines, whom a batch pays, whose names are asked for, and
	// what differs.
	batchesImported = may("select insert", "disbursement_names", "disbursement_notes", "disbursement_payees")
	// statementsDecided are the functions that note a decision about a file in quarantine.
	statementsDecided = may("execute", "decide_statement_import(uuid, text, text, text, timestamptz)", "lock_statement_import(uuid)")
	// record is what tells who did what. Nobody may change or delete a row.
	record = may("insert", "audit")

	// journalTables are the tables that the sink journal writes. Analysts read all but its positions.
	journalTables = append(analysts.Tables(), "journal_positions")
	journalRead   = mayInJournal("SELECT", append(slices.Clone(journalTables), "rewrites")...)
	// journalWritten is what writes rows. A table that a restore lost rows of is asked for them first.
	journalWritten = slices.Concat(mayInJournal("SELECT", journalTables...), mayInJournal("INSERT", journalTables...))
)

// operatorDatabases is what commands need. People run them: what they write is of the nouns that they decide about.
func operatorDatabases() Databases {
	return Databases{
		Rows: rows(registryRead, record, deliveriesRead, deliveriesMade, sessionsRead, sessionsWritten, batchesRead, batchesImported, may("delete", "disbursement_names", "disbursement_payees"), // of an erased line
			may("select", "audit", "audit_position", "audit_sequence", "cashin_reversals", "cashin_usage", "delivery_attempts", "link_failures", "message_reports",
				"operator_answers", "reference_counters"),
			may("select insert update", "digests"), // staff are told at once who is made on the command line
			// the registry, and what is derived from its changes
			may("insert update", "agencies", "api_keys", "applications", "cashin_access", "cashin_pairs", "clerks", "connector_accounts", "erp_settings", "fees",
				"receipt_keys", "replaced_accounts", "services", "staff", "staff_changes", "staff_contacts", "staff_invitations", "staff_issuers", "staff_passkeys", "staff_requests", "staff_roles", "statement_accounts", "webhook_endpoints", "webhook_secrets"),
			may("insert update delete", "payout_modes", "service_mappings"), may("delete", "staff_contacts", "staff_issuers", "staff_roles"), may("select", "decisions"), may("update", "platform"), may("insert update", "row_manifest", "staff_manifest"),
			// a forged row is deleted before it is set anew
			may("delete", "cashin_access", "connector_accounts", "erp_confirmations", "erp_settings", "fees", "statement_accounts"),
			may("select delete", "cashin_tokens", "clerk_devices", "clerk_sessions"),
			may("update", "registry_lock"), may("execute", "lock_staff(uuid[])", "empty_readmodel()"), statementsDecided,
			// cases and statements
			may("select insert update", "case_proposals", "statement_exits", "statement_ledgers", "statement_original_requests", "statement_withdrawals"),
			may("select insert update", "cases"), // a proposed close opens its case
			may("delete", "disbursement_agencies", "disbursement_batches", "disbursement_lines", "disbursement_steps"), may("insert update", "disbursement_positions"), // rebuild batches
			may("select insert update delete", "statement_imports"), may("select insert delete", "statements", "statement_withdrawn_lines"),
			may("select insert", "statement_original_parts"), may("select insert update", "statement_originals"),
			// citizens
			may("select insert update delete", "subject_contacts"), may("select insert update", "link_code_epochs", "subject_epochs"),
			may("select delete", "citizens", "citizen_links", "link_renewals", "known_browsers", "sign_in_codes"),
			may("select update(mac)", "citizen_links", "citizen_passkeys", "citizen_sessions"), // proved again with another master key
			may("select delete", "staff_sessions"),
			may("select update", "citizen_addresses"), may("select update", "message_addresses"),
			// deliveries and personal data
			may("insert update", "delivery_recoveries"), may("select", "delivery_recoveries"), may("select insert update", "jobs"), may("select insert", "job_rows"), may("insert update", "personal_keys"),
		),
		Journal: slices.Concat(journalRead, mayInJournal("SELECT", analysts.Views()...), mayInJournal("INSERT", append(slices.Clone(journalTables), "rewrites")...)),
	}
}

// CheckDatabase asks Postgres whether this process has the rights of a client, and, in production, no others that
// change anything. The error wraps postgres.ErrRights or postgres.ErrExcess and says how to mend it.
func (s *Settings) CheckDatabase(ctx context.Context, pool *postgres.Pool, name string) error {
	client := databaseClient(s.Options, name)
	err := postgres.CheckRights(ctx, pool, client.Rows)
	if err == nil && !s.Developer() {
		err = postgres.CheckExcess(ctx, pool, client.Rows)
	}
	switch {
	case errors.Is(err, postgres.ErrRights):
		return fmt.Errorf("%w; `%s grants %s` prints the statements that give them", err, s.Program, name)
	case errors.Is(err, postgres.ErrExcess):
		return fmt.Errorf("%w; whoever takes over this process could use it: give the role a login of its own, in the group of `%s grants %s`, which also takes away what is not listed", err, s.Program, name)
	}
	return err
}

// CheckJournal is CheckDatabase for ClickHouse. The error wraps clickhouse.ErrRights or clickhouse.ErrExcess.
func (s *Settings) CheckJournal(ctx context.Context, conn clickhouse.Conn, name string) error {
	client := databaseClient(s.Options, name)
	err := clickhouse.CheckRights(ctx, conn, client.Journal)
	if err == nil && !s.Developer() {
		err = clickhouse.CheckExcess(ctx, conn, journalTables, client.Journal)
	}
	switch {
	case errors.Is(err, clickhouse.ErrRights):
		return fmt.Errorf("%w; `%s grants %s --server clickhouse` prints the statements that give them", err, s.Program, name)
	case errors.Is(err, clickhouse.ErrExcess):
		return fmt.Errorf("%w; whoever takes over this process could use it: give the role a user of its own with the role of `%s grants %s --server clickhouse`", err, s.Program, name)
	}
	return err
}

// GroupPrefix begins the names of the groups of users, unless an installation chooses otherwise: quittance_ingress.
const GroupPrefix = "quittance_"

// OwnerStatements returns the SQL that makes the group of the owner and gives it the tables of a schema.
func OwnerStatements(schema string) []string {
	return postgres.Owner(schema, GroupPrefix+ClientMigrate)
}

// Statements returns the SQL that makes the groups of Postgres' users with all their rights in a migrated schema, as
// `quittance grants` prints it, for an installation that this process sets up.
func Statements(o Options, schema string) []string {
	out := OwnerStatements(schema)
	for _, c := range DatabaseClients(o) {
		if len(c.Rows) > 0 {
			out = append(out, postgres.Grants(schema, GroupPrefix+c.Name, c.Rows, true)...)
		}
	}
	return out
}
