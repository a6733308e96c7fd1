package erp_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/dev/simulator"
	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	erpclient "quittance/internal/erp"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/secret"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/sinks/disburse"
	"quittance/sinks/erp"
	"quittance/test/await"
	"quittance/test/httpclient"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/servers"
)

// payday is an agency whose batches come from its simulated ERP and are paid by a simulated operator.
type payday struct {
	*payouts.Installation
	t        *testing.T
	url      string
	erps     *erps
	importer *disbursements.Importer
	personal *personal.Store
	macs     *secret.MACs
	metrics  *prometheus.Registry // of the comparer that runs
	events   *payouts.Reader[record.DisbursementEvent, *record.DisbursementEvent]
	seen     []disbursement.Event
}

const tokenOfERP = "token-of-the-erp"

func newPayday(t *testing.T) *payday {
	t.Helper()
	p := &payday{Installation: payouts.Install(t), t: t}
	p.Process()
	p.Agency()
	s, err := simulator.New(simulator.Config{
		Now: p.Now, Log: servers.Logger(t), Poll: 20 * time.Millisecond, ApprovalDelay: 100 * time.Millisecond, AmbiguousDelay: 100 * time.Millisecond,
		ERPAuth: func(string) []simulator.Auth {
			return []simulator.Auth{{Type: simulator.AuthBearer, Token: tokenOfERP}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	runs(t, s.Run)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p.url = server.URL
	p.erps = &erps{by: map[string]registry.ERPSettings{erpclient.ID(payroll.Tenant, false): {
		BaseURL: server.URL + "/erp/impots", Networks: loopback, Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText(tokenOfERP)},
	}}}
	_, pool := servers.Database(t)
	if p.personal, err = personal.New(personal.Config{Pool: pool, Keys: p.Keys, Now: p.Now}); err != nil {
		t.Fatal(err)
	}
	payees, err := disbursements.NewPayees(pool, p.Keys)
	if err != nil {
		t.Fatal(err)
	}
	if p.macs, err = p.Keys.MACs(disbursements.LabelERPLines); err != nil {
		t.Fatal(err)
	}
	account := disbursements.Account{Account: lines.Account{Code: "mtn", Currency: "XAF", Modes: []string{"mobile_money"}, Phone: p.operator().Payee, Country: "242"}, Fingerprint: "f-mtn", PerSecond: 10}
	p.importer = &disbursements.Importer{
		Processor: p.Client(processor.SenderOperator), Personal: p.personal, Batches: disbursements.NewStore(pool, p.Codec), Payees: payees, Partition: p.Topology.Partition, Now: p.Now,
		IDs:      disbursement.NewIDs(func(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }),
		Accounts: func(string, bool) ([]disbursements.Account, int64) { return []disbursements.Account{account}, 1 },
	}
	p.events = payouts.NewReader[record.DisbursementEvent](p.Installation, schemas.Disbursement.Events)
	return p
}

// runs runs a part until the returned function is called.
func runs(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (p *payday) operator() connector.PayoutConnector {
	p.t.Helper()
	c, err := mtn.Registration.Disburser.New(connector.Config{Now: p.Now, EnquiriesPerSecond: 100})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// compares runs the comparer.
func (p *payday) compares() (stop func()) {
	p.t.Helper()
	p.metrics = prometheus.NewRegistry()
	c, err := erp.NewComparer(erp.ComparerConfig{
		Kafka: p.Kafka, Codec: p.Codec, Processor: p.Client(processor.SenderERP), ERPs: p.erps, Client: caller(), MACs: p.macs, Pause: 20 * time.Millisecond,
		Now: p.Now, Log: servers.Logger(p.t), Metrics: p.metrics,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return runs(p.t, c.Run)
}

// pays runs the sink that has the operator pay.
func (p *payday) pays() {
	p.t.Helper()
	signer, err := commands.NewSigner(p.Keys, processor.SenderDisburse)
	if err != nil {
		p.t.Fatal(err)
	}
	requests, err := commands.NewPayoutVerifier(p.Keys)
	if err != nil {
		p.t.Fatal(err)
	}
	account := mtn.PayoutAccount{BaseURL: connector.BaseURL(p.url + "/mtn"), TargetEnvironment: "mtncongo", SubscriptionKey: "s", APIUser: "u", APIKey: "k"}
	s, err := disburse.New(disburse.Config{
		Kafka: p.Kafka, Topology: p.Topology, Codec: p.Codec, Connectors: map[string]connector.PayoutConnector{"mtn": p.operator()},
		Account: func(string, bool, string, string) (disburse.Account, bool) {
			return disburse.Account{Account: account, Operator: "mtn"}, true
		},
		Open: func(ctx context.Context, batch string, position int, sealed []byte) (salt [32]byte, l digest.Line, err error) {
			content, err := p.personal.Line(ctx, personal.LineID(batch, position), sealed)
			if err != nil {
				return salt, l, err
			}
			return lines.ParseContent(content)
		},
		Requests: requests, Commands: signer, Now: p.Now, Log: servers.Logger(p.t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	runs(p.t, s.Run)
}

// control has the ERP behave.
func (p *payday) control(body string) {
	p.t.Helper()
	a, err := httpclient.Default.Post(p.url+"/control/erp/impots", "application/json", strings.NewReader(body))
	if err != nil || a.Body.Close() != nil || a.StatusCode/100 != 2 {
		p.t.Fatalf("%s: %v, %v", body, a.Status, err)
	}
}

// states gives the ERP the lines of a batch: amounts by the last two digits of the payee's number.
func (p *payday) states(ref string, amounts ...int) {
	p.t.Helper()
	var items []map[string]any
	for i, amount := range amounts {
		if amount > 0 {
			items = append(items, map[string]any{
				"line_ref": fmt.Sprintf("%s-%02d", ref, i+1), "beneficiary": map[string]any{"name": fmt.Sprintf("Payee %d", i+1), "msisdn": fmt.Sprintf("+24206601%04d", i+1)},
				"payment_mode": "MOBILE_MONEY", "amount_minor": amount, "currency": "XAF",
			})
		}
	}
	body, err := json.Marshal(map[string]any{"disbursements": map[string]any{ref: items}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.control(string(body))
}

// approved pulls a batch of three lines, which people approve.
func (p *payday) approved(ref string) disbursement.Batch {
	p.t.Helper()
	p.states(ref, 1000, 2000, 3000)
	settings, _ := p.erps.ERP(payroll.Tenant, false)
	made, err := p.importer.Import(p.t.Context(), disbursements.Import{
		TenantID: payroll.Tenant, BatchRef: ref, Date: p.Now().Format(time.DateOnly), Currency: "XAF", Maker: "ama",
		ERP: &disbursements.ERP{Client: caller(), Settings: settings, MACs: p.macs},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.OK(processor.SenderOffice, made.Batch.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(made.Batch.Digest, "ben", 1, digest.Approve)})
	return made.Batch
}

// release has a person release a batch, which then waits for its ERP.
func (p *payday) release(b disbursement.Batch) {
	p.t.Helper()
	if got := p.OK(processor.SenderOffice, b.ID, disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", b.Holds, digest.Release)}); got.AskedAt.IsZero() || got.Status != disbursement.StatusApproved {
		p.t.Fatalf("the release does not ask the ERP: %+v", got)
	}
}

// until waits for the n-th event of a type of a batch, and returns the batch after it.
func (p *payday) until(b disbursement.Batch, n int, kind disbursement.EventType) disbursement.Batch {
	p.t.Helper()
	for at := 0; ; {
		found := 0
		for _, e := range p.seen {
			if e.Batch != nil && e.Batch.ID == b.ID && e.Type == kind {
				if found++; found == n {
					return *e.Batch
				}
			}
		}
		if at = len(p.seen); at > 10_000 {
			p.t.Fatalf("no %s of %s", kind, b.ID)
		}
		for _, r := range p.events.Next(1) {
			p.seen = append(p.seen, batches.ToEvent(&r))
		}
	}
}

// count returns a metric of the comparer.
func (p *payday) count(name string) float64 {
	p.t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name || f.GetName() == "quittance_erp_lines_total" && m.GetLabel()[0].GetValue() == name {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	p.t.Fatalf("no metric %s", name)
	return 0
}

// paid are the payments in the operator's own book, by amount.
func (p *payday) paid() map[string]int {
	p.t.Helper()
	a, err := httpclient.Default.Get(p.url + "/control/payouts?operator=mtn")
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	var all []struct {
		Payee    string `json:"payee"`
		Payments int    `json:"payments"`
	}
	if err := json.NewDecoder(a.Body).Decode(&all); err != nil {
		p.t.Fatal(err)
	}
	out := map[string]int{}
	for _, x := range all {
		out[x.Payee] += x.Payments
	}
	return out
}

// A batch of the ERP pays when the ERP has its lines at the release, in whatever order. One amount, a line more or fewer, and no
// line at all hold it, and nothing is paid.
func TestBatchesOfTheERPAreAskedForAgain(t *testing.T) {
	t.Parallel()
	p := newPayday(t)
	p.compares()
	p.pays()
	unchanged, shuffled := p.approved("UNCHANGED"), p.approved("SHUFFLED")
	p.release(unchanged)
	p.until(unchanged, 1, disbursement.EventReleased)
	p.control(`{"misbehave": ["shuffled_lines"]}`)
	p.release(shuffled)
	p.until(shuffled, 1, disbursement.EventReleased)
	p.control(`{"status": 200}`)
	for ref, then := range map[string][]int{"AMOUNT": {1000, 2001, 3000}, "MORE": {1000, 2000, 3000, 1}, "FEWER": {1000, 0, 3000}, "NONE": {}} {
		b := p.approved(ref)
		p.states(ref, then...)
		p.release(b)
		held := p.until(b, 1, disbursement.EventHeld)
		if held.Status != disbursement.StatusApproved || held.Hold.Reason != "the ERP has other lines than were approved" || held.Hold.By != "" {
			t.Errorf("%s: %s, %+v", ref, held.Status, held.Hold)
		}
	}
	if same, other := p.count("same"), p.count("other"); same != 2 || other != 4 {
		t.Errorf("%v same, %v other", same, other)
	}
	stop := keepsTime(p)
	for _, b := range []disbursement.Batch{unchanged, shuffled} {
		if done := p.until(b, 1, disbursement.EventDone); done.Lines.Paid.Count != 3 || done.Lines.Paid.Sum != 6000 {
			t.Errorf("%s: %+v", b.BatchRef, done.Lines)
		}
	}
	stop()
	for payee, times := range p.paid() {
		if times != 2 { // once by each of the two batches
			t.Errorf("%s was paid %d times", payee, times)
		}
	}

	// Two people lift the hold once the ERP has the lines again, and the release asks once more.
	b := p.until(heldBatch(p, "AMOUNT"), 1, disbursement.EventHeld)
	p.states("AMOUNT", 1000, 2000, 3000)
	var both [2]disbursement.Signed
	for i, who := range []string{"ama", "cleo"} {
		both[i] = payroll.Step(b.Digest, who, b.Holds, digest.Resume)
	}
	p.OK(processor.SenderOffice, b.ID, disbursement.Lift{Signed: both})
	p.release(b)
	p.until(b, 1, disbursement.EventReleased)
}

// keepsTime moves the clock on, so that operators are asked, until the returned function is called.
func keepsTime(p *payday) (stop func()) {
	return runs(p.t, func(ctx context.Context) error {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				p.Advance(5 * time.Second)
			}
		}
	})
}

func heldBatch(p *payday, ref string) disbursement.Batch {
	i := slices.IndexFunc(p.seen, func(e disbursement.Event) bool { return e.Batch != nil && e.Batch.BatchRef == ref })
	return *p.seen[i].Batch
}

// An ERP that is away, refuses, or breaks off, is no ERP with other lines: it is asked again until it answers. A question that is
// ten minutes old is void, and its answer counts for nothing: the processor has asked again.
func TestERPsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	p := newPayday(t)
	stop := p.compares()
	for name, how := range map[string]string{"AWAY": `{"away": true}`, "CUT": `{"cut": 2}`, "BUSY": `{"status": 503}`, "PAGE": `{"misbehave": ["html"]}`} {
		b, before := p.approved(name), p.count("quittance_erp_lines_failures_total")
		p.control(how)
		p.release(b)
		await.Until(t, name+": it is asked several times", func() bool { return p.count("quittance_erp_lines_failures_total") >= before+3 })
		if p.count("quittance_erp_lines_waiting") != 1 {
			t.Errorf("%s: %v batches wait", name, p.count("quittance_erp_lines_waiting"))
		}
		p.control(`{"status": 200}`)
		p.until(b, 1, disbursement.EventReleased)
	}

	// Ten minutes without an answer, and the agency's ERP is not even in the registry for some of them.
	b := p.approved("LONG")
	p.control(`{"away": true}`)
	p.release(b)
	first := p.until(b, 1, disbursement.EventAsked)
	p.Advance(disbursement.AskAgain + time.Second)
	second := p.until(b, 2, disbursement.EventAsked)
	await.Until(t, "the first question is void", func() bool { return p.count("unanswered") == 1 })
	if a := p.Ask(processor.SenderERP, b.ID, disbursement.ERPSame{AskedAt: first.AskedAt, Same: true}); a.Code() != disbursement.CodeStatus {
		t.Errorf("the answer to the first question: %s", a.Code())
	}

	// The sink that is stopped while it asks leaves the question to the next one.
	stop()
	p.compares()
	p.control(`{"status": 200}`)
	if released := p.until(b, 1, disbursement.EventReleased); released.Sequence <= second.Sequence {
		t.Errorf("released by the first question: %+v", released)
	}
}

// A sink that has lost its offsets answers questions of before once more, which changes nothing.
func TestRepeatedQuestions(t *testing.T) {
	t.Parallel()
	p := newPayday(t)
	stop := p.compares()
	same, other := p.approved("SAME"), p.approved("OTHER")
	p.states("OTHER", 1, 2, 3)
	p.release(same)
	p.release(other)
	released, held := p.until(same, 1, disbursement.EventReleased), p.until(other, 1, disbursement.EventHeld)
	stop()
	rewind(p)
	p.states("OTHER", 1000, 2000, 3000) // as it was approved, so that the repeated answer is another one
	p.states("SAME", 1, 2, 3)
	p.compares()
	await.Until(t, "both are answered again", func() bool { return p.count("same")+p.count("other") == 2 })
	for _, was := range []disbursement.Batch{released, held} {
		now := p.Ask(processor.SenderERP, was.ID, disbursement.ERPSame{AskedAt: p.Now(), Same: true}).Batch // refused or a repetition, with the batch as it is
		if now == nil || now.Status != was.Status || now.Held() != was.Held() {
			t.Errorf("%s: %+v", was.BatchRef, now)
		}
	}
}

// rewind has the group of the comparer begin anew.
func rewind(p *payday) {
	p.t.Helper()
	cl, err := p.Kafka.Client()
	if err != nil {
		p.t.Fatal(err)
	}
	defer cl.Close()
	group := p.Kafka.Prefix + erp.ComparerGroup
	await.Until(p.t, "the group is empty", func() bool {
		answers, err := kadm.NewClient(cl).DeleteGroups(p.t.Context(), group)
		return err == nil && answers[group].Err == nil
	})
}

// The comparer refuses to start without its parts.
func TestComparerNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := erp.NewComparer(erp.ComparerConfig{}); err == nil || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
