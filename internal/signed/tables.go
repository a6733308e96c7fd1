package signed

import (
	"slices"

	"quittance/internal/secret"
)

// Table is a table whose rows decide.
type Table struct {
	Name string
	// Key are the columns of the primary key, in the order in which ID.Key names them.
	Key []string
	// Order are the columns by which Read sorts; Key when empty.
	Order string
	// Left are the columns that do not decide, with the reason. They are not signed.
	Left map[string]string
	// NullDiffers are the columns in which NULL and zero mean different things.
	NullDiffers []string
	// Since is the generation of signed tables that the table came with; 0 for the first. A manifest says
	// which generation it has.
	Since int
	// Of is whose rows they are: OfRegistry when empty.
	Of Family
	// OnPages means that a row may be signed with the key of the manifest of its family, too, because the pages write it.
	OnPages bool
	// EmptySaysNothing marks a table whose row decides nothing while all columns outside the key are
	// zero. A migration makes such a row, without a key to sign it.
	EmptySaysNothing bool
}

// column of the signature in every table.
const column = "signature"

// Tables lists all tables whose rows decide.
var Tables = []Table{
	{Name: "platform", Key: []string{"singleton"}, EmptySaysNothing: true},
	{Name: "agencies", Key: []string{"id"}},
	{Name: "services", Key: []string{"id"}},
	{Name: "service_mappings", Key: []string{"agency_id", "erp_code"}},
	{Name: "fees", Key: []string{"agency_id", "channel", "currency"}, NullDiffers: []string{"maximum"}}, // NULL: no maximum
	{Name: "erp_settings", Key: []string{"agency_id", "live"}},
	{Name: "connector_accounts", Key: []string{"agency_id", "live", "offer"}},
	{Name: "replaced_accounts", Key: []string{"id"}, Order: "id DESC"},
	{Name: "payout_modes", Key: []string{"agency_id", "live", "mode"}, Since: payouts},
	{Name: "statement_accounts", Key: []string{"agency_id", "live", "code"}},
	{Name: "cashin_access", Key: []string{"application_id"}},
	{Name: "applications", Key: []string{"id"}},
	{Name: "webhook_secrets", Key: []string{"endpoint_id", "digest"}, Order: "endpoint_id, created_at DESC, digest"},
	{Name: "webhook_endpoints", Key: []string{"id"}},
	{Name: "receipt_keys", Key: []string{"id"}, Order: "live, signs_from, kid", Left: map[string]string{
		"sealed": "its seal is bound to the id, and what it holds must fit the column public, which is signed",
	}},
	{Name: "staff", Key: []string{"id"}, Order: "created_at, id", Since: people, Of: OfStaff},
	{Name: "staff_contacts", Key: []string{"id"}, Since: people, Of: OfStaff, Left: map[string]string{
		"sealed": "its seal is bound to the id, and a new address has a new id",
	}},
	{Name: "clerks", Key: []string{"agency_id", "code"}, Since: people},
	{Name: "api_keys", Key: []string{"id"}, Since: people, Left: map[string]string{
		"last_used_at": "nothing is decided by it; each use of a key writes it",
	}},
	{Name: "cashin_pairs", Key: []string{"id"}, Order: "application_id, created_at DESC, id DESC", Since: people},
	{Name: "staff_roles", Key: []string{"staff_id", "role"}, Since: portals, Of: OfStaff},
	{Name: "staff_passkeys", Key: []string{"id"}, Order: "created_at, id", Since: portals, Of: OfStaff, Left: map[string]string{
		"sign_count":   "each use of a passkey writes it; whoever lowers it needs the key itself to gain something",
		"last_used_at": "nothing is decided by it; each use of a passkey writes it",
	}},
	{Name: "staff_invitations", Key: []string{"id"}, Order: "invited_at, id", Since: portals, Of: OfStaff, OnPages: true},
	{Name: "staff_changes", Key: []string{"id"}, Order: "proposed_at, id", Since: portals, Of: OfStaff},
	{Name: "staff_requests", Key: []string{"id"}, Order: "created_at, id", Since: requests, Of: OfStaff, OnPages: true},
	{Name: "staff_issuers", Key: []string{"id"}, Order: "created_at, id", Since: issuers, Of: OfStaff},
	{Name: "link_code_epochs", Key: []string{"epoch"}, Since: accounts},
}

// Family is a set of tables that have a manifest, and a key that signs it.
type Family string

const (
	// OfRegistry are the tables that the holders of the master keys change.
	OfRegistry Family = ""
	// OfStaff are the people who sign in to the staff pages. The pages have the key secret.LabelStaffRows, so that they
	// write rows of tables with OnPages, and whoever takes them changes no configuration and no person. The role that
	// carries out what people ask for on pages has secret.LabelPeopleRows, too, which signs all rows of the family.
	OfStaff Family = "staff"
)

// families are all families, the registry first.
var families = []Family{OfRegistry, OfStaff}

// label is that of the key that signs the manifest of the family, and rows of its tables with OnPages.
func (f Family) label() string {
	if f == OfStaff {
		return secret.LabelStaffRows
	}
	return secret.LabelRegistryRows
}

// labels are those of the keys any of which signs a row of the table.
func (t *Table) labels() []string {
	out := []string{secret.LabelRegistryRows}
	if t.Of == OfStaff {
		out = append(out, secret.LabelPeopleRows)
	}
	if t.OnPages {
		out = append(out, t.Of.label())
	}
	return out
}

// table has the manifest of the family.
func (f Family) table() string {
	if f == OfStaff {
		return "staff_manifest"
	}
	return "row_manifest"
}

// Generations of signed tables.
const (
	people     = 1 // people and their keys
	portals    = 2 // roles, passkeys, invitations and changes of staff
	accounts   = 2 // epochs of link codes; accounts of citizens are proved with them (citizens.ProveAll)
	requests   = 3 // what people ask for on the page about people
	payouts    = 4 // which payout account pays which lines
	issuers    = 5 // identity providers of groups of staff
	generation = issuers
)

// Known reports whether the rows of a table are signed.
func Known(table string) bool { return slices.Contains(Names(), table) }

// Names returns the names of the tables whose rows are signed.
func Names() []string {
	out := make([]string, len(Tables))
	for i, t := range Tables {
		out[i] = t.Name
	}
	return out
}

// find returns the table with a name. An unknown name is a fault of the program.
func find(name string) *Table {
	i := slices.IndexFunc(Tables, func(t Table) bool { return t.Name == name })
	if i < 0 {
		panic("no table of signed rows: " + name)
	}
	return &Tables[i]
}
