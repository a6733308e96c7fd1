package cases

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Catalog returns the kinds of cases of all domains, and what staff can propose for each. It is
// the one place that names the domains.
func Catalog() casework.Catalog {
	return casework.Join(checkout.CaseCatalog(), poison, reconciliation)
}

// KindPoison is a record that could not be processed. The processor knows no such case.
const KindPoison casework.Kind = "poison"

var poison = casework.Catalog{
	Kinds: []casework.Kind{KindPoison},
	Exits: []casework.Exit{{Resolution: casework.ResolutionAcknowledge, Of: []casework.Kind{KindPoison}}},
	Evidence: []string{
		EvidencePoisonTopic, EvidencePoisonOffset, EvidenceTopic, EvidencePartition, EvidenceOffset, EvidenceError, EvidenceKey,
	},
}

// State is the state of a case.
type State string

// The states of a case.
const (
	StateOpen   State = "open"
	StateClosed State = "closed"
)

// States has all states of a case.
func States() []State { return []State{StateOpen, StateClosed} }

// Names of the evidence of a poison case.
const (
	EvidencePoisonTopic  = "poison_topic" // without the installation's prefix
	EvidencePoisonOffset = "poison_offset"
	EvidenceTopic        = "topic" // of the original record, as are the next two
	EvidencePartition    = "partition"
	EvidenceOffset       = "offset"
	EvidenceError        = "error"
	EvidenceKey          = "key" // of a tick: the entry
)

// Names of the evidence of a case about dues, a confirmation, a refund of some dues, or their reversal:
// what the ERP knows the payments by, with spaces between several.
const (
	EvidenceTransaction = "transaction_id"
	EvidenceDue         = "erp_due_ref"
)

// Names of the evidence of a case about reported money: what the payer owed, in minor units, for the
// session's own collection. A case of an earlier release has none.
const (
	EvidenceOwed         = "owed_minor"
	EvidenceOwedCurrency = "owed_currency"
	// EvidenceContradicted is "true" when the operator has refused the money since.
	EvidenceContradicted = "contradicted"
	// EvidenceAmountUnknown is "true" when the operator approved without a readable amount.
	EvidenceAmountUnknown = "amount_unknown"
)

// offsetOfTicks stands in the header of a poison record that is no record of a topic.
const offsetOfTicks = "-1"

// Case is an operator case. Amount is zero and Currency is empty for poison. Of a break, Amount is
// the lines less the money that is expected, and may be negative.
type Case struct {
	casework.Case
	// CollectionID, OperatorRef, Account and ApprovedAt are of the money of a payment, as in
	// checkout.Case. Other cases have none.
	CollectionID, OperatorRef, Account string
	ApprovedAt                         time.Time
	// InSession means that the state of the session holds the case. Otherwise cases.events
	// has its exit.
	InSession bool
	// Recorded means that the case was read from cases.events.
	Recorded bool
	// Sequence is that of the snapshot that the case was read from. Without a session it is 1
	// when the case is closed.
	Sequence int64
	// SessionID is empty for poison. For a report of no known session it is the id that
	// the report named.
	SessionID string
	// AgencyID, ApplicationID, OrderID and Mode are empty where the session is not known.
	AgencyID, ApplicationID, OrderID string
	Mode                             string // test or live
	// Clerks are the codes of the clerks who took or gave back the cash.
	Clerks []string
	// Evidence is what else is known.
	Evidence map[string]string
	// EndedAs and EndedAt tell that the matcher has ended the case: its finding has ended, or the
	// matcher has carried out or refused what people agreed on. EndedReason is then the code of the
	// refusal. The sink cases closes the case.
	EndedAs     casework.Resolution
	EndedAt     time.Time
	EndedReason string
}

// State returns the state of the case.
func (c Case) State() State {
	if c.Open() {
		return StateOpen
	}
	return StateClosed
}

// ReadEvent returns the cases in a record of checkout.events: all cases of its session, or
// that of a report of no known session. Errors are those of Codec.Decode.
func ReadEvent(codec *schemas.Codec, value []byte) ([]Case, error) {
	var e record.Event
	if err := codec.Decode(value, &e); err != nil {
		return nil, err
	}
	if e.Session == nil {
		return withoutSession(&e), nil
	}
	s := mapping.ToSession(e.Session)
	out := make([]Case, 0, len(s.Cases))
	for _, known := range s.Cases {
		c := ofMoney(known)
		c.InSession, c.Sequence, c.SessionID, c.AgencyID, c.ApplicationID = true, e.Sequence, s.ID, s.TenantID, s.ApplicationID
		c.OrderID, c.Mode, c.Clerks, c.Evidence = s.OrderID, mode(s.Live), clerks(s, known), evidence(s, known)
		out = append(out, c)
	}
	return out, nil
}

// ofMoney returns what a case about a payment says.
func ofMoney(c checkout.Case) Case {
	return Case{Case: c.Case, CollectionID: c.CollectionID, OperatorRef: c.OperatorRef, Account: c.Account, ApprovedAt: c.ApprovedAt}
}

func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// evidence returns what else is known of a case of a session.
func evidence(s checkout.Session, c checkout.Case) map[string]string {
	if c.Kind == checkout.CaseConfirmation {
		due, _ := s.Due(c.TransactionID)
		return map[string]string{EvidenceTransaction: due.TransactionID, EvidenceDue: due.ERPDueRef}
	}
	out := map[string]string{}
	if len(c.TransactionIDs) > 0 {
		var refs []string
		for _, id := range c.TransactionIDs {
			due, _ := s.Due(id)
			refs = append(refs, cmp.Or(due.ERPDueRef, due.NoticeRef))
		}
		out[EvidenceTransaction], out[EvidenceDue] = strings.Join(c.TransactionIDs, " "), strings.Join(refs, " ")
	}
	owed, currency := c.Expected, s.Currency
	if own := s.Collection; owed == 0 && own != nil && (c.Kind == checkout.CaseMismatch || c.Kind == checkout.CaseLatePayment) && own.ID == c.CollectionID {
		owed, currency = own.Amount, own.Currency
	}
	if owed != 0 {
		out[EvidenceOwed], out[EvidenceOwedCurrency] = strconv.FormatInt(owed, 10), currency
	}
	for name, is := range map[string]bool{EvidenceContradicted: c.Contradicted, EvidenceAmountUnknown: c.AmountUnknown} {
		if is {
			out[name] = "true"
		}
	}
	return out
}

// AmountUnknown reports whether the operator approved without a readable amount.
func (c Case) AmountUnknown() bool { return c.Evidence[EvidenceAmountUnknown] != "" }

// AboutERP reports whether the case is about an ERP that refuses our credentials, and not about the
// confirmation that it names.
func (c Case) AboutERP() bool { return checkout.Case{Case: c.Case}.AboutERP() }

// Owed returns what the payer owed, in minor units. ok is false where it is not known: in cases of
// other kinds, of money for another collection than the session's, and of earlier releases.
func (c Case) Owed() (amount int64, currency string, ok bool) {
	amount, err := strconv.ParseInt(c.Evidence[EvidenceOwed], 10, 64)
	return amount, c.Evidence[EvidenceOwedCurrency], err == nil
}

// clerks returns who took or gave back the money of a case.
func clerks(s checkout.Session, c checkout.Case) []string {
	out := []string{}
	if c.By != "" && c.Kind != checkout.CaseRefundRequest {
		out = append(out, c.By)
	}
	if s.Collection != nil && s.Collection.ID == c.CollectionID {
		for _, code := range []string{s.Collection.Clerk, s.Collection.ReversedBy} {
			if code != "" && !slices.Contains(out, code) {
				out = append(out, code)
			}
		}
	}
	return out
}

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// ReadPoison returns the case of a record of a poison topic, whose name is without the
// prefix. The case's id derives from the position of the original record: a record that a
// consumer sets aside again is the same case. The tick of an entry has no position and
// fails again every hour: an entry has one case a day.
func ReadPoison(topic string, r *kgo.Record) Case {
	evidence := map[string]string{EvidencePoisonTopic: topic, EvidencePoisonOffset: strconv.FormatInt(r.Offset, 10)}
	for header, name := range map[string]string{
		schemas.HeaderTopic: EvidenceTopic, schemas.HeaderPartition: EvidencePartition, schemas.HeaderOffset: EvidenceOffset, schemas.HeaderError: EvidenceError,
	} {
		// A record that was poison before carries its older headers first.
		for _, h := range slices.Backward(r.Headers) {
			if h.Key == header {
				evidence[name] = storable(string(h.Value))
				break
			}
		}
	}
	position := evidence[EvidenceTopic] + "|" + evidence[EvidencePartition] + "|" + evidence[EvidenceOffset]
	switch evidence[EvidenceOffset] {
	case "": // set aside by the first release
		position = fmt.Sprintf("|%d|%d", r.Partition, r.Offset)
	case offsetOfTicks:
		evidence[EvidenceKey] = storable(string(r.Key))
		position += "|" + string(r.Key) + "|" + r.Timestamp.UTC().Format(time.DateOnly)
	}
	sum := sha256.Sum256([]byte("poison|" + topic + "|" + position))
	return Case{
		Case: casework.Case{
			ID: "case_" + strings.ToLower(idEncoding.EncodeToString(sum[:20])), Kind: KindPoison,
			Reason: evidence[EvidenceError], OpenedAt: r.Timestamp.UTC(),
		},
		Clerks: []string{}, Evidence: evidence,
	}
}

// storable returns a text that Postgres can hold.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
}

// Store is the tables of cases and proposals. It is safe for concurrent use; several
// processes may use the same tables.
type Store struct {
	pool *pgxpool.Pool
	keys *secret.Keys // nil: no agency has a single_approval_below
}

// NewStore makes a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Verifying returns the store with the keys that verify the rows of agencies and accounts. Without them
// no proposal is approved by one person.
func (s *Store) Verifying(keys *secret.Keys) *Store { return &Store{s.pool, keys} }

// row is a case as columns has it.
type row struct {
	ID, Kind                                string
	InSession                               bool
	Sequence                                int64
	SessionID, AgencyID, ApplicationID      *string
	Live                                    *bool
	OrderID, CollectionID                   *string
	Amount                                  *int64
	Currency, OperatorRef, Reason, OpenedBy *string
	Clerks                                  []string
	Evidence                                []byte
	OpenedAt                                time.Time
	Resolution, Reference, ClosedBy         *string
	ClosedAt                                *time.Time
	EndedAs                                 *string
	EndedAt                                 *time.Time
	EndedReason                             *string
}

// columns of a row, in its order.
const columns = `id, kind, in_session, sequence, session_id, agency_id, application_id, livemode, order_id, collection_id, amount, currency,
	operator_ref, reason, opened_by, clerks, evidence, opened_at, resolution, reference, closed_by, closed_at`

// read are the columns of a row as it is read. Reading a case again never changes the last three.
const read = columns + `, ended_as, ended_at, ended_reason`

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// orNull returns nil for a zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func fromRow(r row) (Case, error) {
	c := Case{
		Case: casework.Case{
			ID: r.ID, Kind: casework.Kind(r.Kind), Amount: value(r.Amount), Currency: value(r.Currency), Reason: value(r.Reason),
			By: value(r.OpenedBy), OpenedAt: r.OpenedAt, Resolution: casework.Resolution(value(r.Resolution)),
			Reference: value(r.Reference), ClosedBy: value(r.ClosedBy), ClosedAt: value(r.ClosedAt),
		},
		CollectionID: value(r.CollectionID), OperatorRef: value(r.OperatorRef),
		InSession: r.InSession, Sequence: r.Sequence, SessionID: value(r.SessionID), AgencyID: value(r.AgencyID), ApplicationID: value(r.ApplicationID),
		OrderID: value(r.OrderID), Clerks: r.Clerks, Evidence: map[string]string{}, EndedAs: casework.Resolution(value(r.EndedAs)), EndedAt: value(r.EndedAt), EndedReason: value(r.EndedReason),
	}
	if r.Live != nil {
		c.Mode = mode(*r.Live)
	}
	if err := json.Unmarshal(r.Evidence, &c.Evidence); err != nil {
		return Case{}, fmt.Errorf("reading the evidence of %s: %w", r.ID, err)
	}
	if !c.InSession {
		c.Account = c.Evidence[checkout.DetailAccount]
		c.ApprovedAt, _ = time.Parse(time.RFC3339, c.Evidence[checkout.DetailApprovedAt]) // our own text; zero if absent
	}
	return c, nil
}

// args returns the values of columns.
func (c Case) args() ([]any, error) {
	evidence, err := json.Marshal(c.Evidence)
	if err != nil {
		return nil, fmt.Errorf("writing the evidence of %s: %w", c.ID, err)
	}
	var live *bool
	if c.Mode != "" {
		is := c.Mode == mode(true)
		live = &is
	}
	var amount *int64
	if c.Currency != "" {
		amount = &c.Amount
	}
	return []any{
		c.ID, string(c.Kind), c.InSession, c.Sequence, orNull(c.SessionID), orNull(c.AgencyID), orNull(c.ApplicationID), live, orNull(c.OrderID),
		orNull(c.CollectionID), amount, orNull(c.Currency), orNull(c.OperatorRef), orNull(c.Reason), orNull(c.By), c.Clerks, evidence, c.OpenedAt,
		orNull(string(c.Resolution)), orNull(c.Reference), orNull(c.ClosedBy), orNull(c.ClosedAt),
	}, nil
}
