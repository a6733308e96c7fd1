package disbursements_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/disbursement"
	"quittance/internal/call"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/erp"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/secret"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/servers"
)

// source is an agency with an ERP, and what makes batches of its lines.
type source struct {
	*payouts.Installation
	t        *testing.T
	pool     *pgxpool.Pool
	importer *disbursements.Importer
	erp      *disbursements.ERP

	mu     sync.Mutex
	answer http.HandlerFunc
}

func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{Installation: payouts.Install(t), t: t}
	s.Process()
	s.Agency()
	pays, err := mtn.Registration.Disburser.New(connector.Config{Now: s.Now})
	if err != nil {
		t.Fatal(err)
	}
	_, s.pool = servers.Database(t)
	store, err := personal.New(personal.Config{Pool: s.pool, Keys: s.Keys, Now: s.Now})
	if err != nil {
		t.Fatal(err)
	}
	payees, err := disbursements.NewPayees(s.pool, s.Keys)
	if err != nil {
		t.Fatal(err)
	}
	account := disbursements.Account{Account: lines.Account{Code: "mtn", Currency: "XAF", Modes: []string{"mobile_money"}, Phone: pays.Payee, Country: "242"}, Fingerprint: "f-mtn", PerSecond: 10}
	s.importer = &disbursements.Importer{
		Processor: s.Client(processor.SenderOperator), Personal: store, Batches: disbursements.NewStore(s.pool, s.Codec), Payees: payees, Partition: s.Topology.Partition, Now: s.Now,
		IDs:      disbursement.NewIDs(func(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }),
		Accounts: func(string, bool) ([]disbursements.Account, int64) { return []disbursements.Account{account}, 1 },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	macs, err := s.Keys.MACs(disbursements.LabelERPLines)
	if err != nil {
		t.Fatal(err)
	}
	s.erp = &disbursements.ERP{Client: erp.New(erp.Config{Loopback: true}), MACs: macs, Settings: registry.ERPSettings{
		AgencyID: payroll.Tenant, BaseURL: server.URL, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("s3cret")},
	}}
	return s
}

// has sets what the ERP answers.
func (s *source) has(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// stated answers with items.
func stated(items ...map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"items": append([]map[string]any{}, items...)})
	}
}

// item is a line of an ERP, changed by members.
func item(ref string, amount int, changes ...any) map[string]any {
	out := map[string]any{
		"line_ref": ref, "beneficiary": map[string]any{"name": "Payee " + ref, "msisdn": "+242066000001"}, "payment_mode": "MOBILE_MONEY", "amount_minor": amount,
		"currency": "XAF", "purpose": "Bourse", "metadata": map[string]any{"lot": "7"},
	}
	for i := 0; i < len(changes); i += 2 {
		out[fmt.Sprint(changes[i])] = changes[i+1]
	}
	return out
}

func (s *source) pull(ctx context.Context) (disbursements.Imported, error) {
	return s.importer.Import(ctx, disbursements.Import{
		TenantID: payroll.Tenant, BatchRef: "B 7", Date: s.Now().Format(time.DateOnly), Currency: "XAF", Maker: "ama", ERP: s.erp,
	})
}

// nothing fails if a batch or a key of a line is there.
func (s *source) nothing(what string) {
	s.t.Helper()
	keys := 0
	if err := s.pool.QueryRow(s.t.Context(), `SELECT count(*) FROM personal_keys`).Scan(&keys); err != nil || keys != 0 {
		s.t.Errorf("%s: %d keys are left, %v", what, keys, err)
	}
	a := s.Ask(processor.SenderOperator, "dsb_other", payroll.Opening("B 7", s.Now().Format(time.DateOnly)))
	if a.Refusal != nil { // a live batch would have the reference
		s.t.Fatalf("%s: the reference is taken: %+v", what, *a.Refusal)
	}
	s.OK(processor.SenderOperator, "dsb_other", disbursement.Discard{By: "ama"})
}

// An ERP that is away, refuses, breaks off, or has what nobody can pay, leaves neither a batch nor the key of a line.
func TestPullsThatMakeNothing(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	many := func(n, cut int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items":[`)
			for i := range n {
				if i == cut {
					panic(http.ErrAbortHandler)
				}
				if i > 0 {
					_, _ = io.WriteString(w, ",")
				}
				_, _ = fmt.Fprintf(w, `{"line_ref":"L-%d","beneficiary":{"name":"A","msisdn":"+242066000001"},"payment_mode":"MOBILE_MONEY","amount_minor":1,"currency":"XAF"}`, i)
			}
			_, _ = io.WriteString(w, `]}`)
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		// want is the reason of an answer that is not usable, or the faults of its lines.
		want string
	}{
		"away":              {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, call.FaultConnection},
		"401":               {status(http.StatusUnauthorized), "401"},
		"500":               {status(http.StatusInternalServerError), "500"},
		"cut off":           {many(50_000, 40_000), call.FaultConnection},
		"too many":          {many(erp.MaxLines+1, -1), erp.FaultInvalid + ":" + erp.InvalidTooMany},
		"a page":            {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, erp.FaultInvalid + ":" + erp.InvalidHTML},
		"an empty list":     {stated(), "items: no_lines"},
		"another currency":  {stated(item("a", 1), item("b", 2, "currency", "EUR")), "items[1].currency: currency"},
		"a line_ref twice":  {stated(item("a", 1), item("a", 2)), "items[1].line_ref: line_ref_twice"},
		"an amount as text": {stated(item("a", 1), item("b", 2, "amount_minor", "2")), "items[1].amount_minor: item_type"},
		"two faults":        {stated(item("a", 0), item("b", 2, "payment_mode", "CASH")), "items[0].amount_minor: item_range, items[1].payment_mode: mode"},
		"another operator":  {stated(item("a", 1, "beneficiary", map[string]any{"name": "A", "msisdn": "055000001"})), "items[0].beneficiary.msisdn: phone"},
	} {
		s.has(c.answer)
		made, err := s.pull(t.Context())
		var none *disbursements.ERPError
		switch {
		case errors.As(err, &none):
			if !strings.Contains(none.Result.Reason(), c.want) || name == "cut off" && (none.Items < 30_000 || none.Items > 40_000) {
				t.Errorf("%s: %s after %d items, want %s", name, none.Result.Reason(), none.Items, c.want)
			}
		case errors.Is(err, disbursements.ErrFile):
			var got []string
			for _, f := range made.File.Faults {
				got = append(got, f.String())
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%s: %q, want %s", name, got, c.want)
			}
		default:
			t.Errorf("%s: %+v, %v", name, made.Batch, err)
		}
		s.nothing(name)
	}
}

// The same lines in another order, with other metadata, are the same batch. Any other value that approvers see is another one, and
// so is a batch of another agency, mode or reference.
func TestSameLines(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.has(stated(item("a", 1000), item("b", 2000), item("c", 3000)))
	made, err := s.pull(t.Context())
	b := made.Batch
	if err != nil || b.Source != disbursement.SourceERP || b.Status != disbursement.StatusSealed || b.Count != 3 || b.Sum != 6000 {
		t.Fatalf("%+v, %v", b, err)
	}
	opened := payouts.NewReader[record.DisbursementEvent](s.Installation, schemas.Disbursement.Events)
	for _, e := range opened.Next(6) {
		if e.Batch != nil && e.Batch.ImportID != b.ImportID {
			t.Errorf("the event %s has another id of the import", e.Type)
		}
	}
	same := func(b disbursement.Batch, items ...map[string]any) bool {
		t.Helper()
		s.has(stated(items...))
		got, err := s.erp.Same(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	lines := []map[string]any{item("c", 3000), item("a", 1000, "metadata", map[string]any{"lot": "8"}), item("b", 2000)}
	if !same(b, lines...) {
		t.Error("another order, and other metadata, are other lines")
	}
	for name, other := range map[string][]map[string]any{
		"an amount":        {item("c", 3000), item("a", 1001), item("b", 2000)},
		"two amounts":      {item("c", 3000), item("a", 2000), item("b", 1000)}, // with the same sum
		"a name":           {item("c", 3000), item("a", 1000, "beneficiary", map[string]any{"name": "Other", "msisdn": "+242066000001"}), item("b", 2000)},
		"a number":         {item("c", 3000), item("a", 1000, "beneficiary", map[string]any{"name": "Payee a", "msisdn": "+242066000002"}), item("b", 2000)},
		"a purpose":        {item("c", 3000), item("a", 1000, "purpose", "x"), item("b", 2000)},
		"a line more":      slices.Concat(lines, []map[string]any{item("d", 1)}),
		"a line less":      lines[:2],
		"another line_ref": {item("c", 3000), item("d", 1000), item("b", 2000)},
		"a faulty line":    slices.Concat(lines[:2], []map[string]any{item("b", 2000, "amount_minor", "2000")}),
		"none":             nil,
	} {
		if same(b, other...) {
			t.Errorf("with another value of %s it is the same", name)
		}
	}
	for name, change := range map[string]func(*disbursement.Batch){
		"agency": func(b *disbursement.Batch) { b.TenantID = "other" }, "mode": func(b *disbursement.Batch) { b.Live = true },
		"reference": func(b *disbursement.Batch) { b.BatchRef = "B 8" }, "id": func(b *disbursement.Batch) { b.ImportID = "i" },
	} {
		other := b
		change(&other)
		if same(other, lines...) {
			t.Errorf("of another %s it is the same", name)
		}
	}
	strange, err := secret.GenerateKeys().MACs(disbursements.LabelERPLines)
	if err != nil {
		t.Fatal(err)
	}
	s.erp.MACs = strange
	if same(b, lines...) {
		t.Error("whoever has not the key makes the same")
	}
}
