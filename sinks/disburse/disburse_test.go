package disburse_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/simulator"
	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/mtn"
	"quittance/internal/connector/pi"
	"quittance/internal/disbursements"
	"quittance/internal/personal"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/sinks/disburse"
	"quittance/test/await"
	"quittance/test/connectors"
	"quittance/test/httpclient"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/servers"
)

// rail is an installation with an operator.
type rail struct {
	*payouts.Installation
	t        *testing.T
	faults   *connectors.Faults
	operator string
	replaced bool
	unknown  bool

	// refuses is set while the simulated operators refuse the agency's settings: Airtel its PIN, which was tried pins times, MTN
	// its keys.
	refuses atomic.Bool
	pins    atomic.Int64
}

func newRail(t *testing.T) *rail {
	t.Helper()
	r := &rail{Installation: payouts.Install(t), t: t, faults: &connectors.Faults{}}
	s, err := simulator.New(simulator.Config{
		Now: r.Now, Log: servers.Logger(t), Poll: 20 * time.Millisecond, ApprovalDelay: 300 * time.Millisecond, AmbiguousDelay: 300 * time.Millisecond,
		AirtelPIN: func([]byte) bool { r.pins.Add(1); return !r.refuses.Load() },
		MTN:       func(_, _, _ string) bool { return !r.refuses.Load() },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	server := httptest.NewServer(r.faults.Handler(s.Handler()))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	r.operator = server.URL
	return r
}

// number is the simulator's payee with the last two digits, see GET / of the simulator.
func number(digits string) string { return "2420660000" + digits }

// open opens the content of a line, which tests seal by plain JSON.
func open(_ context.Context, _ string, _ int, sealed []byte) (salt [32]byte, _ digest.Line, err error) {
	var c payroll.Content
	if strings.HasPrefix(string(sealed), "erased") {
		return salt, c.Line, fmt.Errorf("opening: %w", personal.ErrErased)
	}
	err = json.Unmarshal(sealed, &c)
	return c.Salt, c.Line, err
}

// sink runs the sink until the returned function is called.
func (r *rail) sink() (stop func()) {
	r.t.Helper()
	signer, err := commands.NewSigner(r.Keys, "disburse")
	if err != nil {
		r.t.Fatal(err)
	}
	requests, err := commands.NewPayoutVerifier(r.Keys)
	if err != nil {
		r.t.Fatal(err)
	}
	pays, err := mtn.Registration.Disburser.New(connector.Config{Now: r.Now, Timeout: 500 * time.Millisecond, EnquiriesPerSecond: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	airtelPays, err := airtel.NewPayouts(connector.Config{Now: r.Now, Timeout: 500 * time.Millisecond, EnquiriesPerSecond: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		r.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		r.t.Fatal(err)
	}
	other := airtel.PayoutAccount{BaseURL: connector.BaseURL(r.operator + "/airtel"), ClientID: "c", ClientSecret: "s", PIN: "4711", PublicKey: base64.StdEncoding.EncodeToString(public)}
	switchPays, err := pi.NewPayouts(connector.Config{Now: r.Now, Timeout: 500 * time.Millisecond, EnquiriesPerSecond: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	third := pi.Account{BaseURL: connector.BaseURL(r.operator + "/switch"), Purpose: connector.PurposePayout, ClientID: "c", ClientSecret: "s", APIKey: "k", Alias: "a"}
	account := mtn.PayoutAccount{BaseURL: connector.BaseURL(r.operator + "/mtn"), TargetEnvironment: "mtncongo", SubscriptionKey: "s", APIUser: "u", APIKey: "k"}
	s, err := disburse.New(disburse.Config{
		Kafka: r.Kafka, Topology: r.Topology, Codec: r.Codec, Connectors: map[string]connector.PayoutConnector{"mtn": pays, "airtel": airtelPays, "switch": switchPays},
		Account: func(tenantID string, live bool, code, fingerprint string) (disburse.Account, bool) {
			if code == "switch" {
				return disburse.Account{Account: third, Operator: "switch"}, tenantID == payroll.Tenant && !live && fingerprint == "f-switch"
			}
			if code == "airtel" {
				return disburse.Account{Account: other, Operator: "airtel"}, tenantID == payroll.Tenant && !live && fingerprint == "f-airtel"
			}
			return disburse.Account{Account: account, Operator: "mtn", Replaced: r.replaced}, !r.unknown && tenantID == payroll.Tenant && !live && code == "mtn" && fingerprint == "f-mtn"
		},
		Open: open, Requests: requests, Commands: signer, Now: r.Now, Log: servers.Logger(r.t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// payment is a payout in the operator's own book.
type payment struct {
	ID         string `json:"id"`
	PayoutRef  string `json:"external_id"`
	Payee      string `json:"payee"`
	Status     string `json:"status"`
	Payments   int    `json:"payments"`
	Duplicates int    `json:"duplicate_requests"`
	Enquiries  int    `json:"enquiries"`
}

// book returns the book of MTN by payout_ref.
func (r *rail) book() map[string]payment { return r.bookOf("mtn") }

// bookOf returns the book of an operator by payout_ref; of all operators if it is empty.
func (r *rail) bookOf(operator string) map[string]payment {
	r.t.Helper()
	var all []payment
	r.call(http.MethodGet, "/control/payouts?operator="+operator, &all)
	out := map[string]payment{}
	for _, p := range all {
		if _, twice := out[p.PayoutRef]; twice {
			r.t.Errorf("the operator has two payouts of %s", p.PayoutRef)
		}
		out[p.PayoutRef] = p
	}
	return out
}

func (r *rail) call(method, path string, answer any) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.operator+path, strings.NewReader("{}"))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		r.t.Fatalf("%s: %s", path, resp.Status)
	}
	if answer != nil {
		if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
			r.t.Fatal(err)
		}
	}
}

// request is a request about the line of a batch, as the processor makes it.
func (r *rail) request(id string, line disbursement.NewLine, kind disbursement.RequestKind) disbursement.Request {
	now := r.Now()
	return disbursement.Request{
		Kind: kind, TenantID: payroll.Tenant, Account: "mtn", Fingerprint: "f-mtn", Currency: "XAF", At: now, NotAfter: now.Add(30 * time.Second),
		Line: disbursement.Line{
			LineKey: disbursement.LineKey{Batch: id}, Ref: line.Ref, Amount: line.Amount, Leaf: line.Leaf, Sealed: line.Sealed,
			Status: disbursement.LineSent, Attempt: 1, Try: 1, SentAt: now, RequestedAt: now,
		},
	}
}

func (r *rail) send(q disbursement.Request) {
	r.t.Helper()
	r.write(q, true)
}

// write writes a request, with the proof of the processor or without.
func (r *rail) write(q disbursement.Request, sign bool) {
	r.t.Helper()
	rec := batches.FromRequest(q)
	value, err := r.Codec.Encode(&rec)
	if err != nil {
		r.t.Fatal(err)
	}
	key := q.Line.AttemptID().PayoutRef()
	out := &kgo.Record{Topic: r.Topology.Name(schemas.TopicPayouts), Partition: r.Topology.Partition(schemas.TopicPayouts, key), Key: []byte(key), Value: value}
	if sign {
		signer, err := commands.NewPayoutSigner(r.Keys)
		if err != nil {
			r.t.Fatal(err)
		}
		signer.Sign(out)
	}
	if err := r.Producer.ProduceSync(r.t.Context(), out).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// words returns the next words by batch, until there are n.
func (r *rail) words(commands *payouts.Reader[record.DisbursementCommand, *record.DisbursementCommand], n int) map[string]disbursement.Word {
	r.t.Helper()
	out := map[string]disbursement.Word{}
	for len(out) < n {
		for _, c := range commands.Next(1) {
			cmd, err := batches.ToCommand(&c)
			if err != nil {
				r.t.Fatal(err)
			}
			w, ok := cmd.Do.(disbursement.Word)
			if !ok || cmd.TenantID != payroll.Tenant || cmd.Live {
				r.t.Fatalf("%+v", cmd)
			}
			out[cmd.Batch] = w
		}
	}
	return out
}

// Each answer, and each reason why nothing is sent, is one word. What was not approved is never sent.
func TestWords(t *testing.T) {
	t.Parallel()
	r := newRail(t)
	line := func(digits string) disbursement.NewLine {
		return payroll.LineTo(number(digits), "ref-"+digits, "mtn", "", 5000)
	}
	changed := line("01")
	changed.Sealed = payroll.LineTo(number("02"), "ref-01", "mtn", "", 5000).Sealed
	more := line("01")
	more.Amount = 50_000
	erased := line("01")
	erased.Sealed = []byte("erased")
	other := payroll.LineTo("242055000001", "ref-other", "mtn", "", 5000)
	pays := map[string]struct {
		line disbursement.NewLine
		want disbursement.Word
	}{
		"paid":    {line("01"), disbursement.Word{Kind: disbursement.WordPending, Source: disbursement.FromRequest}},
		"refused": {line("04"), disbursement.Word{Kind: disbursement.WordPending, Source: disbursement.FromRequest}},
		"waits":   {line("03"), disbursement.Word{Kind: disbursement.WordPending, Source: disbursement.FromRequest}},
		"doubt":   {line("09"), disbursement.Word{Kind: disbursement.WordPending, Source: disbursement.FromRequest}},
		"changed": {changed, disbursement.Word{Kind: disbursement.WordChanged, Source: disbursement.FromRequest}},
		"more":    {more, disbursement.Word{Kind: disbursement.WordChanged, Source: disbursement.FromRequest}},
		"erased":  {erased, disbursement.Word{Kind: disbursement.WordUnopenable, Source: disbursement.FromRequest}},
		"other":   {other, disbursement.Word{Kind: disbursement.WordRefused, Absent: true, Source: disbursement.FromRequest}},
	}
	told := payouts.NewReader[record.DisbursementCommand](r.Installation, schemas.Disbursement.Commands)
	stop := r.sink()
	r.warm(told, "first")
	for id, p := range pays {
		r.send(r.request(id, p.line, disbursement.RequestPay))
	}
	words := r.words(told, len(pays))
	for id, p := range pays {
		same(t, id, words[id], p.want)
	}
	book := r.book()
	for _, id := range []string{"changed", "more", "erased", "other"} {
		if p, sent := book[ref(id)]; sent {
			t.Errorf("%s was sent: %+v", id, p)
		}
	}
	stop()

	// With another account, operators are asked about attempts, and nobody is paid.
	r.replaced = true
	r.sink()
	r.warm(told, "paid")
	anyContent := r.request("refused", line("04"), disbursement.RequestEnquire)
	anyContent.Line.Leaf = digest.Hash{1}
	r.send(anyContent)
	for _, id := range []string{"waits", "doubt"} {
		r.send(r.request(id, pays[id].line, disbursement.RequestEnquire))
	}
	r.send(r.request("nobody", line("01"), disbursement.RequestEnquire))
	words = r.words(told, 4)
	same(t, "refused", words["refused"], disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry})
	same(t, "waits", words["waits"], disbursement.Word{Kind: disbursement.WordPending, Source: disbursement.FromEnquiry})
	same(t, "doubt", words["doubt"], disbursement.Word{Kind: disbursement.WordRefused, Unproven: true, Source: disbursement.FromEnquiry})
	same(t, "nobody", words["nobody"], disbursement.Word{Kind: disbursement.WordNotFound, Source: disbursement.FromEnquiry})
	r.send(r.request("late", line("01"), disbursement.RequestPay))
	same(t, "late", r.words(told, 1)["late"], disbursement.Word{Kind: disbursement.WordChanged, Source: disbursement.FromRequest})
	if _, sent := r.book()[ref("late")]; sent {
		t.Error("paid from an account that nobody approved")
	}
	r.replaced = false
	r.write(r.request("forged", line("01"), disbursement.RequestPay), false)
	r.send(r.request("after", line("01"), disbursement.RequestPay))
	if w := r.words(told, 1); w["after"].Kind != disbursement.WordPending {
		t.Errorf("%+v", w)
	}
	if _, sent := r.book()[ref("forged")]; sent {
		t.Error("a request that the processor has not made is carried out")
	}
}

// ref is the payout_ref of the first attempt of a batch's first line.
func ref(batch string) string { return disbursement.NewAttemptID(batch, 0, 1).PayoutRef() }

// warm waits until the sink has its partitions, and has a payee paid: nobody else has read later records.
func (r *rail) warm(told *payouts.Reader[record.DisbursementCommand, *record.DisbursementCommand], id string) {
	r.t.Helper()
	r.send(r.request(id, payroll.LineTo(number("01"), "ref-01", "mtn", "", 5000), disbursement.RequestEnquire))
	w := r.words(told, 1)[id]
	want := disbursement.Word{Kind: disbursement.WordNotFound, Source: disbursement.FromEnquiry}
	if id == "paid" {
		want = disbursement.Word{Kind: disbursement.WordPaid, Amount: 5000, Currency: "XAF", Source: disbursement.FromEnquiry}
	}
	same(r.t, id, w, want)
}

// same fails unless a word of the first attempt says what is wanted.
func same(t *testing.T, id string, got, want disbursement.Word) {
	t.Helper()
	if got.Attempt != 1 || got.Source == disbursement.FromRequest && got.Try != 1 {
		t.Errorf("%s: %+v", id, got)
	}
	got.Attempt, got.Try, got.Code, got.OperatorRef = 0, 0, "", ""
	if got != want {
		t.Errorf("%s: %+v, want %+v", id, got, want)
	}
}

// A refusal of which the operator has no payout proves nothing if another call to pay was made before: that one may still
// arrive, and a new attempt would pay a second time.
func TestARefusalAfterALostRequestProvesNothing(t *testing.T) {
	t.Parallel()
	r := newRail(t)
	told := payouts.NewReader[record.DisbursementCommand](r.Installation, schemas.Disbursement.Commands)
	r.sink()
	r.warm(told, "first")
	line := payroll.LineTo(number("01"), "ref-01", "mtn", "", 5000)
	const poor = `{"code":"NOT_ENOUGH_FUNDS","message":"Insufficient balance."}`
	r.faults.Answer(1, isTransfer, http.StatusBadRequest, poor)
	r.send(r.request("only", line, disbursement.RequestPay))
	same(t, "only", r.words(told, 1)["only"], disbursement.Word{Kind: disbursement.WordNoFunds, Absent: true, Source: disbursement.FromRequest})

	// The first call and the enquiry after it get no answer.
	r.faults.Next(1, isTransfer, connectors.Silent)
	r.faults.Next(1, isEnquiry, connectors.Error500)
	r.faults.Answer(1, isTransfer, http.StatusBadRequest, poor)
	r.send(r.request("again", line, disbursement.RequestPay))
	same(t, "again", r.words(told, 1)["again"], disbursement.Word{Kind: disbursement.WordNoFunds, Source: disbursement.FromRequest})
}

// lines are the lines of a batch as the last events tell them.
func (r *rail) lines(events *payouts.Reader[record.DisbursementEvent, *record.DisbursementEvent], lines map[int]disbursement.Line) (batch disbursement.Batch) {
	r.t.Helper()
	for _, e := range events.Next(1) {
		event := batches.ToEvent(&e)
		for _, l := range event.Lines {
			lines[l.Position] = l
		}
		if event.Batch != nil {
			batch = *event.Batch
		}
	}
	return batch
}

func isTransfer(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/transfer") }
func isEnquiry(r *http.Request) bool  { return strings.Contains(r.URL.Path, "/transfer/") }

// A batch goes over the rail while answers are lost and sink and processor are restarted, and while the offsets of the sink are lost. The
// operator's own book says who was paid, and how often.
func TestNobodyIsPaidTwiceOverTheRail(t *testing.T) {
	t.Parallel()
	r := newRail(t)
	stopProcessor := r.Process()
	r.Agency()
	payees := []string{"01", "02", "04", "06", "07", "08", "09", "11", "12", "03"}
	const n = 60
	var all []disbursement.NewLine
	for k := range n {
		all = append(all, payroll.LineTo(number(payees[k%len(payees)]), fmt.Sprintf("line-%03d", k), "mtn", "", int64(1000+k)))
	}
	for _, f := range []struct {
		n     int
		of    connectors.Match
		fault connectors.Fault
	}{{6, isTransfer, connectors.CutAfter}, {4, isTransfer, connectors.SilentAfter}, {4, isTransfer, connectors.Error500}, {3, isTransfer, connectors.Garbage}, {6, isEnquiry, connectors.Error500}, {3, isEnquiry, connectors.CutAfter}} {
		r.faults.Next(f.n, f.of, f.fault)
	}
	stopSink := r.sink()
	b := r.Released("dsb_1", all...)
	await.Until(t, "first payouts", func() bool { return len(r.book()) > 10 })
	stopSink()
	stopProcessor()
	r.Process()
	r.rewind()
	stopSink = r.sink()
	await.Until(t, "all are with the operator", func() bool {
		// An attempt that the operator does not know is requested again after ten minutes.
		r.Advance(20 * time.Second)
		return len(r.book()) >= n
	})
	stopSink()
	r.rewind()
	r.sink()

	// Half of those who wait are paid, the other half refused.
	lines, events := map[int]disbursement.Line{}, payouts.NewReader[record.DisbursementEvent](r.Installation, schemas.Disbursement.Events)
	waiting := 0
	for _, p := range r.book() {
		if p.Payee == number("03") {
			waiting++
			do := "pay"
			if waiting%2 == 0 {
				do = "refuse"
			}
			r.call(http.MethodPost, "/control/payouts/"+p.ID+"/"+do, nil)
		}
	}
	deadline := time.Now().Add(90 * time.Second)
	done := false
	for !done && time.Now().Before(deadline) {
		r.Advance(15 * time.Second)
		if got := r.lines(events, lines); got.Status == disbursement.StatusDone {
			done = true
		}
	}
	if !done {
		t.Fatalf("the batch is not done: %d lines", len(lines))
	}
	// What happened is proven from Kafka, and nothing of it is called wrong.
	if proof, err := disbursements.Prove(t.Context(), r.Kafka, r.Topology, r.Codec, payroll.Tenant, b.ID); err != nil || len(proof.Faults) > 0 || proof.Sent < n {
		t.Errorf("%d requests, %q, %v", proof.Sent, proof.Faults, err)
	}
	book := r.book()
	twice, lost, stuck, paid, doubts := 0, 0, 0, 0, 0
	for position := range n {
		l, times := lines[position], 0
		for attempt := 1; attempt <= l.Attempt; attempt++ {
			times += book[disbursement.NewAttemptID(b.ID, position, attempt).PayoutRef()].Payments
		}
		paid += times
		switch {
		case times > 1:
			twice++
		case l.Status == disbursement.LineReady || l.Status == disbursement.LineSent:
			stuck++
		case (l.Status == disbursement.LinePaid) != (times == 1) && !l.Unproven && !l.Contested:
			lost++
			t.Errorf("line %d is %s, and the operator has paid %d times: %+v", position, l.Status, times, l)
		case l.Unproven:
			doubts++
		}
	}
	t.Logf("lines=%d paid=%d paid_twice=%d lost=%d stuck=%d unproven=%d", n, paid, twice, lost, stuck, doubts)
	if twice+lost+stuck > 0 || paid < n/2 || doubts != n/10 {
		t.Errorf("paid_twice=%d lost=%d stuck=%d unproven=%d", twice, lost, stuck, doubts)
	}
}

// rewind makes the sink read all requests again.
func (r *rail) rewind() {
	r.t.Helper()
	adm := kadm.NewClient(r.Producer)
	topic := r.Topology.Name(schemas.TopicPayouts)
	starts, err := adm.ListStartOffsets(r.t.Context(), topic)
	if err != nil {
		r.t.Fatal(err)
	}
	await.Until(r.t, "the group is empty", func() bool {
		err := adm.CommitAllOffsets(r.t.Context(), r.Kafka.Prefix+disburse.Group, starts.Offsets())
		if err != nil && !errors.Is(err, context.Canceled) {
			return false
		}
		return err == nil
	})
}
