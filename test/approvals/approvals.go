// Package approvals gives tests the pages on which an agency approves batches, over the real processor and its read model.
package approvals

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/identity"
	"quittance/internal/personal"
	"quittance/money/localtime"
	processor "quittance/processors/disbursement"
	"quittance/sinks/readmodel"
	"quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/registries"
	"quittance/test/servers"
)

// World is the pages over the processor of batches and its read model. Ama prepares, Ben and Cleo approve, Rita reads; Zoe
// approves for another agency.
type World struct {
	*backoffice.World
	// Batch commands go to Installation, whose clock the pages have. Browsers are by name.
	Installation *payouts.Installation
	Browsers     map[string]*backoffice.Browser
	// StopProcessor ends the processor: nobody answers commands then.
	StopProcessor func()
}

// New makes a world in which nobody is enrolled. before is called while the agency has no people with passkeys.
func New(t *testing.T, before ...func(*backoffice.World)) *World {
	t.Helper()
	w := &World{World: backoffice.New(t)}
	w.Installation = payouts.InstallWith(t, w.Keys)
	w.Seed(t, registries.Full+"  - {id: "+registries.AgencyB+", slug: douanes, name: Direction générale des douanes}\n")
	w.StopProcessor = w.Installation.Process()
	w.Processor = w.Installation.Client(processor.SenderOffice)
	w.Files.Partition = w.Installation.Topology.Partition
	sink, err := readmodel.NewBatches(readmodel.BatchesConfig{Kafka: w.Installation.Kafka, Store: disbursements.NewStore(w.Pool, w.Installation.Codec), Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sink.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the read model: %v", err)
		}
	})
	for _, f := range before {
		f(w.World)
	}
	w.Add(t, "impots", []identity.Role{identity.RolePreparer, identity.RoleApprover}, "Ama")
	w.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Ben", "Cleo")
	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Rita")
	w.Add(t, "douanes", []identity.Role{identity.RoleApprover, identity.RolePreparer}, "Zoe")
	for n, name := range []string{"Ama", "Ben", "Cleo", "Rita", "Zoe"} {
		w.Write(t, `UPDATE staff SET number = $2 WHERE id = $1`, w.IDs[name], fmt.Sprint("M-", n+1))
	}
	w.SignIn(t, 0)
	return w
}

// SignIn moves the clock forward and signs everybody in.
func (w *World) SignIn(t *testing.T, after time.Duration) {
	t.Helper()
	w.Installation.Advance(after)
	w.MoveTo(w.Installation.Now())
	w.Browsers = map[string]*backoffice.Browser{}
	for _, name := range []string{"Ama", "Ben", "Cleo", "Rita", "Zoe"} {
		w.Browsers[name] = w.Enter(t, name)
	}
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// Form returns the hidden fields of a form of a page, with more.
func (w *World) Form(t *testing.T, name, path, action string, more ...string) url.Values {
	t.Helper()
	page := w.Browsers[name].Get(path).Body.String()
	_, form, found := strings.Cut(page, `action="/`+action+`?`)
	if !found {
		t.Fatalf("%s has no form for %s:\n%.9000s", path, action, page)
	}
	form, _, _ = strings.Cut(form, "</form>")
	out := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(form, -1) {
		out.Set(field[1], field[2])
	}
	for i := 0; i < len(more); i += 2 {
		out.Set(more[i], more[i+1])
	}
	return out
}

// Press has a person sign a form of a page.
func (w *World) Press(t *testing.T, name, path, action string, more ...string) {
	t.Helper()
	a := w.Browsers[name].Press(t, name, "/"+action+"/begin", w.Form(t, name, path, action, more...), "/"+action)
	if a.Code != http.StatusOK {
		t.Fatalf("%s by %s: %d %s", action, name, a.Code, a.Body)
	}
}

// Sealed makes a sealed batch of n lines, which Ama prepares.
func (w *World) Sealed(t *testing.T, id string, n int) disbursement.Batch {
	t.Helper()
	return w.SealedOf(t, disbursement.SourceFile, id, n)
}

// SealedOf is Sealed for lines of a source.
func (w *World) SealedOf(t *testing.T, source disbursement.Source, id string, n int) disbursement.Batch {
	t.Helper()
	list := make([]lines.Line, n)
	for k := range list {
		list[k].Content = digest.Line{
			Amount: int64(1000 + k), Currency: "XAF", LineRef: fmt.Sprintf("%s-%06d", id, k), PayoutAccount: "mtn", PaymentMode: "momo", Name: fmt.Sprintf("PAYEE %06d", k), MSISDN: "242060001234",
		}
	}
	sealed, err := lines.Seal(list, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	open := payroll.Opening("ref-"+id, w.Installation.Now().Format(time.DateOnly))
	open.Maker, open.Source = w.IDs["Ama"], source
	w.Installation.OK(processor.SenderOperator, id, open)
	for chunk, err := range sealed.Chunks(func(position int, content []byte) ([]byte, error) {
		return w.Lines.SealLine(t.Context(), personal.LineID(id, position), json.RawMessage(content), personal.Payee{Phone: "242060001234"}, w.Installation.Now().Add(time.Hour))
	}) {
		if err != nil {
			t.Fatal(err)
		}
		w.Installation.OK(processor.SenderOperator, id, disbursement.AddLines{ImportID: "i", Position: chunk.Position, Lines: chunk.Lines})
	}
	b := w.Installation.OK(processor.SenderOperator, id, disbursement.Seal{Count: n, Sum: sealed.Sum, Root: sealed.Root})
	w.Shows(t, b)
	return b
}

// Import makes a batch of a file that pays in test mode today, which Ama prepares.
func (w *World) Import(t *testing.T, ref, file string, draft bool) disbursements.Imported {
	t.Helper()
	made, err := w.Files.Import(t.Context(), disbursements.Import{
		TenantID: registries.AgencyA, BatchRef: ref, Date: localtime.Day(w.Now()), Currency: "XAF", Maker: w.IDs["Ama"], Draft: draft,
		File: strings.NewReader(file), Size: int64(len(file)),
	})
	if err != nil {
		t.Fatalf("importing %s: %v", ref, err)
	}
	if draft {
		await.Until(t, "the draft in the read model", func() bool {
			b, err := w.Batches.Batch(t.Context(), disbursements.Scope{TenantID: registries.AgencyA}, made.Batch.ID)
			return err == nil && b.Count == made.Batch.Count
		})
		return made
	}
	w.Shows(t, made.Batch)
	return made
}

// Shows waits until the read model has a batch.
func (w *World) Shows(t *testing.T, b disbursement.Batch) {
	t.Helper()
	await.Until(t, "the batch in the read model", func() bool {
		got, err := w.Batches.Batch(t.Context(), disbursements.Scope{TenantID: registries.AgencyA}, b.ID)
		return err == nil && got.Sequence >= b.Sequence
	})
}

// Batch reads a batch of the read model.
func (w *World) Batch(t *testing.T, id string) disbursements.Batch {
	t.Helper()
	b, err := w.Batches.Batch(t.Context(), disbursements.Scope{TenantID: registries.AgencyA}, id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// PeoplePath is the page of people and policy, of test mode.
const PeoplePath = "/agency/batches/people?mode=test"

// Addresses of the forms of changes.
const (
	Propose = "agency/batches/people/propose"
	Confirm = "agency/batches/people/confirm"
)

// PolicyForm are the fields of a policy of two tiers: a chief up to a million, two above.
func PolicyForm() []string {
	return []string{
		"kind", "policy", "currency", "XAF", "up_to1", "1 000 000", "levels1", "chief 1", "levels2", "chief 2", "approve_within", "72", "pay_within_days", "5", "name_check", "off", "release", "manual",
	}
}

// Agency enrols Ama, Ben and Cleo and sets a policy, on the pages. All are in force.
func (w *World) Agency(t *testing.T) {
	t.Helper()
	w.Press(t, "Ama", PeoplePath, Propose, "own_roles", "maker", "person", w.IDs["Ben"], "roles", "chief")
	w.Press(t, "Ben", PeoplePath, Confirm)
	w.SignIn(t, 25*time.Hour)
	w.Press(t, "Ben", PeoplePath, Propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "chief")
	w.Press(t, "Ama", PeoplePath, Confirm)
	w.Press(t, "Ama", PeoplePath, Propose, PolicyForm()...)
	w.Press(t, "Ben", PeoplePath, Confirm)
	w.SignIn(t, 25*time.Hour)
}
