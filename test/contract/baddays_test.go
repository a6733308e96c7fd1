package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/measure"
	devstack "quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/internal/connector"
	"quittance/schemas"
	"quittance/test/harness"
)

// TestBadDays causes each fault that can meet a payment, on the whole program with a
// real Kafka. The tests of the packages cover the details of each fault:
//
//	bad input                      TestBadInput; ministry request_test.go; pages TestFaultyForms
//	double click, back, two tabs   here; pages TestDoubleClick, TestTwoTabs…, TestBackAfterTheEnd, TestAttemptOfAnotherSession
//	operator 500, silent           here; collect TestSilentOperator, TestLostAnswer, TestOneHangsOthersGoOn; mtn TestConformance
//	callback early, twice, forged, here; callbacks TestReportAtItsAddress, TestForgedReport, TestUnreadableReport;
//	  unknown, of another amount   checkout TestContractStateTable, TestOrphanOfNoSession, TestUnprovenCallbackOnlyAsks
//	ERP down, receiver down        here; webhook TestDownThenUp, TestHangingDestinationDoesNotSlowAnother, TestGoneIsHeldUntilResumed
//	delayed past not_after         here; collect TestTooLate, TestClockJumpsDuringAnOutage
//	success after the window,      here; checkout TestUndecidedCollectionBlocksTheNextUntilFinal,
//	  two collections of an order  TestLatePaymentKeepsTheNextFromCollecting; pages TestPreviousUndecided
//	two orders of a due            here; checkout TestClaims, TestClaimsInRandomHistories
//	Postgres away                  here; sinks/readmodel TestPostgresComesAndGoes; webhook TestWaitsForPostgresBeforeSendingOldRecords
//	broker restarted               here; TestCrash, under load
//	ClickHouse away                here; journal TestClickHouseAway
//	undecodable record             here; TestPoison of session, collect, journal, webhook, sinks/readmodel
func TestBadDays(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation with a real Kafka")
	}
	t.Parallel()
	d := &badDays{Up: harness.NewUp(t, "--broker", "kafka")}
	d.Registry = harness.WithoutQuota(t, d.Dir)
	// Registered before Start, so that the broker is stopped after the program.
	t.Cleanup(func() {
		if d.broker != nil {
			_ = d.broker.Stop(context.WithoutCancel(t.Context()))
		}
	})
	d.Start(t)

	t.Run("at one time", func(t *testing.T) {
		for _, day := range []struct {
			name string
			run  func(*testing.T)
		}{
			{"double click", d.doubleClick},
			{"back button", d.backButton},
			{"two tabs", d.twoTabs},
			{"operator answers 500", d.operatorFails},
			{"callback twice", d.calledBackTwice},
			{"callback lost", d.neverCalledBack},
			{"callback for an unknown collection", d.unknownCollection},
			{"forged callback", d.forgedCallback},
			{"another amount", d.anotherAmount},
			{"two collections of an order approved", d.bothApproved},
			{"two orders of a due", d.dueOfAnotherOrder},
		} {
			t.Run(day.name, func(t *testing.T) {
				t.Parallel()
				day.run(t)
			})
		}
	})
	// These disturb all sessions or move the clock of the installation.
	t.Run("operator silent, callback before the answer", d.operatorSilent)
	t.Run("undecodable records", d.undecodable)
	t.Run("ClickHouse away", d.clickHouseAway)
	t.Run("Postgres away", d.postgresAway)
	t.Run("broker restarted", d.brokerRestarted)
	t.Run("ERP and receiver down", d.receiversDown)
	t.Run("delayed past not_after", d.tooLate)
	t.Run("success after the window", d.successAfterTheWindow)
	t.Run("in the end", d.audit)
}

// badDays is the installation of the test.
type badDays struct {
	*harness.Up
	broker *devstack.Kafka // started in place of the program's own
}

// order creates a session of an order that has the name of the test.
func (d *badDays) order(t *testing.T) harness.Session {
	t.Helper()
	return d.Create(t, strings.ReplaceAll(filepath.Base(t.Name()), " ", "-"))
}

// once checks that one collection paid a session, and that the integrator, the ERP and
// the journal know it.
func (d *badDays) once(t *testing.T, s harness.Session) {
	t.Helper()
	if got := d.Becomes(t, s.ID, "completed"); !got.Paid {
		t.Error("completed and not paid")
	}
	if c := d.Collections(t, s); len(c) != 1 || c[0].Status != "approved" {
		t.Errorf("the operator has %+v, want one approved payment", c)
	}
	d.Delivered(t, s.ID, "checkout.completed")
	d.Confirmed(t, s)
	if n := d.Journalled(t, s.ID, "checkout.completed"); n != 1 {
		t.Errorf("the journal has %d completions, want 1", n)
	}
}

// pending starts a payment that waits for /control, and returns the operator's
// collection.
func (d *badDays) pending(t *testing.T, s harness.Session) harness.Collection {
	t.Helper()
	d.Citizen(s.ID).Pay(t, "06 600 00 77")
	return d.Collected(t, s)
}

func (d *badDays) approve(t *testing.T, c harness.Collection) {
	t.Helper()
	d.Control(t, "collections/"+c.ID+"/approve", "")
}

func (d *badDays) doubleClick(t *testing.T) {
	s := d.order(t)
	review := d.Citizen(s.ID).Review(t, "06 600 00 01")
	click := func() { d.confirmAtOnce(t, s, review.Clone()) }
	harness.AtOnce(click, click, click)
	d.once(t, s)
}

// confirmAtOnce confirms, and again while the service says that it cannot answer in time, which a busy
// machine may. It may be called from other goroutines.
func (d *badDays) confirmAtOnce(t *testing.T, s harness.Session, f harness.PageForm) {
	send := func() (harness.Answer, error) {
		return d.Send(t.Context(), http.MethodPost, d.URL(harness.AtService, f.Action), f.Fields.Encode(),
			"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	}
	a, err := send()
	for again := 0; err == nil && a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "" && again < 5; again++ {
		a, err = send()
	}
	if err != nil || a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/c/"+s.ID+"?") {
		t.Errorf("confirming: %d to %q %v", a.Status, a.Header.Get("Location"), err)
	}
}

// The citizen confirms and goes back to the review while the payment waits, and again
// after the payment. Each time the citizen confirms again, also with another number. One
// payment is made.
func (d *badDays) backButton(t *testing.T) {
	s := d.order(t)
	review := d.Citizen(s.ID).Review(t, "06 600 00 77")
	other := review.Clone()
	other.Fields.Set("phone", "06 600 00 01")
	d.Citizen(s.ID).Confirm(t, review)
	c := d.Collected(t, s)
	d.Citizen(s.ID).Confirm(t, review)
	d.Citizen(s.ID).Confirm(t, other)
	d.approve(t, c)
	d.Becomes(t, s.ID, "completed")
	d.Citizen(s.ID).Confirm(t, review)
	d.Citizen(s.ID).Confirm(t, other)
	d.once(t, s)
}

func (d *badDays) twoTabs(t *testing.T) {
	s := d.order(t)
	one, two := d.Citizen(s.ID).Review(t, "06 600 00 77"), d.Citizen(s.ID).Review(t, "06 600 00 78")
	harness.AtOnce(
		func() { d.confirmAtOnce(t, s, one) },
		func() { d.confirmAtOnce(t, s, two) },
	)
	d.approve(t, d.Collected(t, s))
	d.once(t, s)
}

func (d *badDays) operatorFails(t *testing.T) {
	s := d.order(t)
	d.Citizen(s.ID).Pay(t, "06 600 00 11")
	d.once(t, s)
}

func (d *badDays) calledBackTwice(t *testing.T) {
	s := d.order(t)
	d.Citizen(s.ID).Pay(t, "06 600 00 09")
	d.once(t, s)
	harness.Eventually(t, "the operator calls back twice", func() error {
		if c := d.Collections(t, s)[0]; c.CallbacksSent != 2 || c.CallbackStatus != http.StatusOK {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}

func (d *badDays) neverCalledBack(t *testing.T) {
	s := d.order(t)
	d.Citizen(s.ID).Pay(t, "06 600 00 08")
	d.once(t, s)
	if c := d.Collections(t, s)[0]; c.CallbacksSent != 0 || c.Enquiries == 0 {
		t.Errorf("the operator has %+v, want no callback and an enquiry", c)
	}
}

// report sends an operator's callback about a payment.
func (d *badDays) report(t *testing.T, url, status, amount string) harness.Answer {
	t.Helper()
	return d.Call(t, http.MethodPut, url, fmt.Sprintf(
		`{"financialTransactionId":"4711","externalId":"1","amount":%q,"currency":"XAF","payer":{"partyIdType":"MSISDN","partyId":"242066000077"},"status":%q}`,
		amount, status), "Content-Type", "application/json")
}

// An operator reports a success of a payment that the service did not request. The
// callback address is authentic, so the report becomes an operator case.
func (d *badDays) unknownCollection(t *testing.T) {
	s := d.order(t)
	address := connector.CallbackURL(d.Keys(t), d.URL(harness.AtService, ""), "mtn", s.ID, uuid.NewString())
	for range 2 {
		if a := d.report(t, address, "SUCCESSFUL", "5075"); a.Status != http.StatusOK {
			t.Fatalf("the report is answered %d, want 200", a.Status)
		}
	}
	if n := d.Journalled(t, s.ID, "collection.orphaned"); n < 1 {
		t.Errorf("the journal has %d orphans, want one at least", n)
	}
	if got := d.Session(t, s.ID); got.Status != "open" || got.Paid {
		t.Errorf("the session is %+v, want it open", got)
	}
	d.Citizen(s.ID).Pay(t, "06 600 00 01")
	d.once(t, s)
}

// A forged callback has the right ids and a wrong address. It causes an enquiry and
// decides nothing.
func (d *badDays) forgedCallback(t *testing.T) {
	s := d.order(t)
	c := d.pending(t, s)
	without := c.CallbackURL[:strings.LastIndex(c.CallbackURL, "/")]
	mac := []byte(c.CallbackURL[len(without)+1:])
	mac[0] ^= 1
	if mac[0] < 'A' {
		mac[0] = 'z'
	}
	for _, forged := range []string{without, without + "/" + string(mac), without + "/x"} {
		if a := d.report(t, forged, "SUCCESSFUL", "5075"); a.Status != http.StatusAccepted {
			t.Errorf("a forged report is answered %d, want 202", a.Status)
		}
	}
	harness.Eventually(t, "the operator is asked", func() error {
		if got := d.Collections(t, s)[0]; got.Enquiries == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	if got := d.Session(t, s.ID); got.Status != "open" || got.Paid {
		t.Fatalf("the session is %+v after a forged report, want it open", got)
	}
	d.approve(t, c)
	d.once(t, s)
}

func (d *badDays) anotherAmount(t *testing.T) {
	s := d.order(t)
	c := d.pending(t, s)
	d.Control(t, "collections/"+c.ID+"/approve", `{"amount": "1"}`)
	if n := d.Journalled(t, s.ID, "collection.mismatched"); n != 1 {
		t.Errorf("the journal has %d mismatches, want 1", n)
	}
	if got := d.Session(t, s.ID); got.Paid || got.Status == "completed" {
		t.Errorf("the session is %+v, want it not paid", got)
	}
	if n := len(d.Confirmations(t, s)); n != 0 {
		t.Errorf("the ERP has %d confirmations, want none", n)
	}
}

// The operator refuses the first payment, and a second one pays the order. Then the
// operator reports that the first payment succeeded: a late payment.
func (d *badDays) bothApproved(t *testing.T) {
	first := d.order(t)
	c := d.pending(t, first)
	d.Control(t, "collections/"+c.ID+"/reject", "")
	d.Becomes(t, first.ID, "failed")
	second := d.order(t)
	if second.ID == first.ID || second.OrderID != first.OrderID {
		t.Fatalf("the second session is %+v, want another session of the same order", second)
	}
	d.Citizen(second.ID).Pay(t, "06 600 00 01")
	d.once(t, second)
	if a := d.report(t, c.CallbackURL, "SUCCESSFUL", "5075"); a.Status != http.StatusOK {
		t.Fatalf("the report is answered %d, want 200", a.Status)
	}
	d.Delivered(t, first.ID, "checkout.late_payment")
	if n := d.Journalled(t, first.ID, "checkout.late_payment"); n != 1 {
		t.Errorf("the journal has %d late payments, want 1", n)
	}
	if got := d.Session(t, first.ID); got.Status != "failed" || got.Paid {
		t.Errorf("the first session is %+v, want it failed", got)
	}
	refused(t, d.Post(t, harness.GuichetKey, fmt.Sprintf(`{"order_id":%q,"amount":5000}`, first.OrderID)), http.StatusConflict, "checkout.order_paid")
}

// dueOfAnotherOrder: a due is paid by one order at a time, and by another one only after the
// ERP has accepted the payment.
func (d *badDays) dueOfAnotherOrder(t *testing.T) {
	first := d.order(t)
	other := fmt.Sprintf(`{"order_id":"the-same-due","amount":5000,"metadata":{"erp_due_ref":"DUE-%s"}}`, first.OrderID)
	if faults := refused(t, d.Post(t, harness.GuichetKey, other), http.StatusConflict, "checkout.due_in_payment"); len(faults) != 1 ||
		faults[0].Field != "metadata.erp_due_ref" || faults[0].Rule != "in_payment" {
		t.Errorf("the refusal names %+v", faults)
	}
	d.Citizen(first.ID).Pay(t, "06 600 00 01")
	d.once(t, first)
	harness.Eventually(t, "the ERP's acceptance frees the due", func() error {
		if a := d.Post(t, harness.GuichetKey, other); a.Status != http.StatusCreated {
			return fmt.Errorf("answered %d: %s", a.Status, a.Body)
		}
		return nil
	})
}

// source returns what completed a session: "callback" or "enquiry".
func (d *badDays) source(t *testing.T, s harness.Session) string {
	t.Helper()
	d.Journalled(t, s.ID, "checkout.completed")
	rows, err := d.Rows(t, fmt.Sprintf("SELECT detail['source'] AS source FROM quittance.journal FINAL WHERE entry_type = 'event' AND session_id = '%s' AND event = 'checkout.completed'", s.ID))
	if err != nil || len(rows) != 1 {
		t.Fatalf("reading the completion from the journal: %v %v", rows, err)
	}
	return fmt.Sprint(rows[0]["source"])
}

// The answer to the first request comes after the callback. For the second request
// neither an answer nor a callback comes: an enquiry completes the session.
func (d *badDays) operatorSilent(t *testing.T) {
	early, silent := d.Create(t, "callback-before-the-answer"), d.Create(t, "operator-silent")
	pay := func(s harness.Session, phone string) {
		d.Control(t, "mtn", `{"delay": "5m", "times": 1}`)
		d.Citizen(s.ID).Pay(t, phone)
		d.Collected(t, s)
	}
	pay(early, "06 600 00 01")
	d.once(t, early) // an enquiry about it would have the delay in place of the next request
	pay(silent, "06 600 00 08")
	d.Control(t, "mtn", `{"reset": true}`)
	d.once(t, silent)
	if got := d.source(t, early); got != "callback" {
		t.Errorf("a %s completed the first session, want the callback", got)
	}
	if got := d.source(t, silent); got != "enquiry" {
		t.Errorf("a %s completed the second session, want the enquiry", got)
	}
}

// Records that cannot be decoded go to the poison topics with their positions and are
// counted. The records behind them are processed.
func (d *badDays) undecodable(t *testing.T) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(program.Local(d.Port+harness.AtBroker)), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumeTopics(schemas.TopicPoisonCommands, schemas.TopicPoisonCollections, schemas.TopicPoisonReadmodel, schemas.TopicPoisonJournal, schemas.TopicPoisonDeliveries, schemas.TopicPoisonCases),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	mark := "no record of ours: " + uuid.NewString()
	inputs := []string{
		schemas.TopicCommands, schemas.TopicCollections, schemas.TopicEvents, schemas.TopicWebhooks,
		schemas.TopicConfirmations, schemas.TopicWebhooksDeliveries, schemas.TopicERPDeliveries,
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Soon)
	defer cancel()
	where := map[string]int64{}
	for partition := range int32(schemas.DefaultPartitions) { // also the partition of the order
		for _, topic := range inputs {
			r, err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: partition, Key: []byte("k"), Value: []byte(mark)}).First()
			if err != nil {
				t.Fatal(err)
			}
			where[fmt.Sprintf("%s/%d", topic, partition)] = r.Offset
		}
	}
	s := d.Create(t, "after-the-undecodable")
	d.Citizen(s.ID).Pay(t, "06 600 00 01")
	d.once(t, s)

	// Two sinks read events: the read model and the journal.
	want := (len(inputs) + 1) * schemas.DefaultPartitions
	for seen := 0; seen < want; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records are in the poison topics after %v", seen, want, harness.Soon)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != mark {
				t.Errorf("%s has %q", r.Topic, r.Value)
				return
			}
			headers := map[string]string{}
			for _, h := range r.Headers {
				headers[strings.TrimPrefix(h.Key, "quittance-")] = string(h.Value)
			}
			at := headers["topic"] + "/" + headers["partition"]
			if offset, ok := where[at]; !ok || headers["offset"] != fmt.Sprint(offset) || headers["error"] == "" {
				t.Errorf("%s has a record with the headers %v, want an error and offset %d of %s", r.Topic, headers, offset, at)
			}
			seen++
		})
	}
	for name, want := range map[string]int{
		"quittance_processor_poison_total":        1,
		"quittance_collect_poison_total":          1,
		"quittance_journal_poison_total":          1,
		"quittance_delivery_poison_total":         4,
		"quittance_readmodel_events_total_poison": 1,
	} {
		if got := d.poisonCount(t, name); got < float64(want*schemas.DefaultPartitions) {
			t.Errorf("%s is %v, want %d", name, got, want*schemas.DefaultPartitions)
		}
	}
}

// poisonCount reads a counter of poison records. That of the read model has a label.
func (d *badDays) poisonCount(t *testing.T, name string) float64 {
	t.Helper()
	if name != "quittance_readmodel_events_total_poison" {
		return d.Metric(t, name)
	}
	a := d.Call(t, http.MethodGet, d.URL(harness.AtHealth, "/metrics"), "")
	for line := range strings.Lines(string(a.Body)) {
		var n float64
		if _, err := fmt.Sscanf(line, `quittance_readmodel_events_total{outcome="poison"} %g`, &n); err == nil {
			return n
		}
	}
	return 0
}

// ClickHouse is killed and started again. The journal then has every payment once.
func (d *badDays) clickHouseAway(t *testing.T) {
	before := d.Create(t, "before-ClickHouse-dies")
	d.Citizen(before.ID).Pay(t, "06 600 00 02")
	old := d.Child(t, "quittance-clickhouse")
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil { // it is down, and its supervisor does not notice
		t.Fatal(err)
	}
	during := d.Create(t, "while-ClickHouse-is-away")
	d.Citizen(during.ID).Pay(t, "06 600 00 01")
	d.Becomes(t, during.ID, "completed")
	d.Delivered(t, during.ID, "checkout.completed")
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, s := range []harness.Session{before, during} {
		d.once(t, s)
		harness.Eventually(t, "ClickHouse has the payment once", func() error {
			rows, err := d.Rows(t, fmt.Sprintf("SELECT order_id, confirmation_state FROM quittance.payments WHERE session_id = '%s'", s.ID))
			if err == nil && (len(rows) != 1 || rows[0]["confirmation_state"] != "accepted") {
				err = fmt.Errorf("it has %v", rows)
			}
			return err
		})
	}
	if now := d.Child(t, "quittance-clickhouse"); now == old {
		t.Error("ClickHouse was not killed")
	}
}

// Postgres does not answer for half a minute. Meanwhile sessions are created, payments
// under way continue, and every read is answered with 503.
func (d *badDays) postgresAway(t *testing.T) {
	const away = 30 * time.Second
	under := d.Create(t, "paid-while-Postgres-is-away")
	c := d.pending(t, under)
	server := d.Child(t, "postgres")
	all := append(measure.Children(server), server)
	resume := func() {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	defer resume()
	// The server is stopped before its children, so that it starts no others.
	slices.Reverse(all)
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
	d.approve(t, c)
	var created []harness.Session
	read, refusals := 0, 0
	for begun := time.Now(); time.Since(begun) < away; {
		created = append(created, d.Create(t, fmt.Sprintf("while-Postgres-is-away-%d", len(created))))
		a := d.Call(t, http.MethodGet, d.Sessions("/"+created[len(created)-1].ID), "", "Authorization", "Bearer "+harness.GuichetKey)
		if a.Status == http.StatusServiceUnavailable {
			refused(t, a, http.StatusServiceUnavailable, "generic.unavailable")
			if a.Header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
			refusals++
		} else {
			t.Errorf("GET answers %d %s, want 503", a.Status, a.Body)
			read++
		}
		if a := d.Call(t, http.MethodGet, d.URL(harness.AtService, "/c/"+created[0].ID), ""); a.Status != http.StatusServiceUnavailable {
			t.Errorf("the page answers %d, want 503", a.Status)
		}
	}
	t.Logf("%d sessions created in %v without Postgres, %d reads refused", len(created), away, refusals)
	if len(created) < 3 {
		t.Errorf("%d sessions created in %v without Postgres, want 3 at least", len(created), away)
	}
	resume()
	for _, s := range created {
		if got := d.Session(t, s.ID); got.Status != "open" || got.OrderID != s.OrderID {
			t.Errorf("the session was created as %+v and is read as %+v", s, got)
		}
	}
	d.once(t, under)
	d.Citizen(created[0].ID).Pay(t, "06 600 00 01")
	d.once(t, created[0])
}

// The broker is killed and started again. A creation that was not acknowledged is
// repeated with the same key and makes one session. A payment under way continues.
func (d *badDays) brokerRestarted(t *testing.T) {
	under := d.Create(t, "paid-over-a-broker's-death")
	d.Citizen(under.ID).Pay(t, "06 600 00 02")
	d.Collected(t, under)
	if err := syscall.Kill(d.Child(t, "java"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	key := uuid.NewString()
	post := func() (harness.Answer, error) {
		return d.Send(t.Context(), http.MethodPost, d.Sessions(""), `{"order_id":"asked-without-a-broker","amount":5000,"metadata":{"erp_due_ref":"DUE-B"}}`,
			"Authorization", "Bearer "+harness.GuichetKey, "Content-Type", "application/json", "Idempotency-Key", key)
	}
	a, err := post()
	if err != nil {
		t.Fatal(err)
	}
	refused(t, a, http.StatusServiceUnavailable, "generic.unavailable")
	// `up` does not restart its broker, so the test starts one with the same folder and ports.
	if d.broker, err = devstack.StartKafka(t.Context(), devstack.KafkaConfig{
		Dir: filepath.Join(d.Data(), "kafka"), Port: d.Port + harness.AtBroker, ControllerPort: d.Port + harness.AtController,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}); err != nil {
		t.Fatal(err)
	}
	var s harness.Session
	harness.Eventually(t, "sessions are created again", func() error {
		a, err := post()
		if err == nil && a.Status != http.StatusCreated {
			err = fmt.Errorf("%d %s", a.Status, a.Body)
		}
		if err == nil {
			a.Into(t, &s)
		}
		return err
	})
	var list struct {
		Items []harness.Session `json:"items"`
		Total int               `json:"total"`
	}
	harness.Eventually(t, "the list answers", func() error {
		a, err := d.Send(t.Context(), http.MethodGet, d.Sessions("?order_id=asked-without-a-broker"), "", "Authorization", "Bearer "+harness.GuichetKey)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("%d", a.Status)
		}
		if err == nil {
			a.Into(t, &list)
		}
		return err
	})
	if list.Total != 1 || list.Items[0].ID != s.ID {
		t.Errorf("the order has the sessions %+v, want only %s", list, s.ID)
	}
	d.once(t, under)
	d.Citizen(s.ID).Pay(t, "06 600 00 01")
	d.once(t, s)
}

// The agency's ERP and the integrator's receiver are down for minutes. Each is called
// again, and in the end has the payment once.
func (d *badDays) receiversDown(t *testing.T) {
	d.Control(t, "erp/impots", `{"status": 503}`)
	d.Control(t, "inbox/guichet", `{"status": 500}`)
	s := d.order(t)
	d.Citizen(s.ID).Pay(t, "06 600 00 01")
	d.Becomes(t, s.ID, "completed")
	tried := func(n int) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("%d attempts each", n), func() error {
			webhooks, confirmations := len(d.Inbox(t, s.ID)), d.attempts(t, s)
			if webhooks < n || confirmations < n {
				return fmt.Errorf("%d webhooks, %d confirmations", webhooks, confirmations)
			}
			return nil
		})
	}
	tried(1)
	for n, pause := range []time.Duration{10 * time.Second, 90 * time.Second, 7 * time.Minute} {
		d.Advance(t, pause)
		tried(n + 2)
	}
	if got := d.Confirmations(t, s); len(got) != 0 {
		t.Fatalf("an ERP that is down has accepted %+v", got)
	}
	d.Control(t, "erp/impots", `{"status": 200}`)
	d.Control(t, "inbox/guichet", `{"status": 200}`)
	d.Advance(t, 45*time.Minute)
	d.once(t, s)
	for _, m := range d.Inbox(t, s.ID) {
		if m.Event.EventID != d.Inbox(t, s.ID)[0].Event.EventID || m.Headers["webhook-id"] != m.Event.EventID || m.SignatureValid == nil || !*m.SignatureValid {
			t.Errorf("an attempt is %+v, want the same event id and a valid signature", m)
		}
	}
}

// attempts counts the calls that asked the ERP to accept a session's confirmation.
func (d *badDays) attempts(t *testing.T, s harness.Session) int {
	t.Helper()
	rows, err := d.Rows(t, fmt.Sprintf("SELECT attempt FROM quittance.journal FINAL WHERE session_id = '%s' AND entry_type = 'delivery' AND destination_kind = 'erp' AND outcome != 'deferred'", s.ID))
	if err != nil {
		t.Logf("asking the journal: %v", err)
	}
	return len(rows)
}

// The operator refuses every call until not_after of the collection has passed. The
// request is not sent any more, and the session fails.
func (d *badDays) tooLate(t *testing.T) {
	d.Control(t, "mtn", `{"status": 503}`)
	s := d.order(t)
	d.Citizen(s.ID).Pay(t, "06 600 00 01")
	harness.Eventually(t, "the citizen waits", func() error {
		if page := d.Citizen(s.ID).Page(t); !strings.Contains(page, "Confirm on your phone") {
			return errors.New("the page does not say so")
		}
		return nil
	})
	d.Advance(t, 4*time.Minute) // not_after comes after two minutes, the end of the window after five
	time.Sleep(2 * time.Second) // every role has read the new time
	d.Control(t, "mtn", `{"reset": true}`)
	d.Becomes(t, s.ID, "failed")
	if c := d.Collections(t, s); len(c) != 0 {
		t.Errorf("the operator has collections requested after not_after: %+v", c)
	}
	var body struct {
		Code string `json:"failure_code"`
	}
	if err := json.Unmarshal([]byte(d.Delivered(t, s.ID, "checkout.failed").Body), &body); err != nil || body.Code != "collect.operator_unavailable" {
		t.Errorf("the session failed with %q, %v", body.Code, err)
	}
}

// The payer approves after the session has failed at the end of its window. Another
// session of the order does not collect while the first collection is undecided, nor
// after its approval.
func (d *badDays) successAfterTheWindow(t *testing.T) {
	first := d.order(t)
	d.Citizen(first.ID).Pay(t, "06 600 00 10") // thirty seconds after the window of five minutes
	c := d.Collected(t, first)
	d.Advance(t, 5*time.Minute+2*time.Second)
	d.Becomes(t, first.ID, "failed")

	second := d.order(t)
	review := d.Citizen(second.ID).Review(t, "06 600 00 01")
	if a := d.Citizen(second.ID).Submit(t, review); a.Status != http.StatusConflict {
		t.Errorf("confirming while the first is undecided: %d, want 409", a.Status)
	}
	d.Advance(t, 20*time.Minute)
	late := d.Delivered(t, first.ID, "checkout.late_payment")
	if late.Event.Status != "failed" || late.Event.Paid {
		t.Errorf("the webhook of the late payment is %s", late.Body)
	}
	if n := d.Journalled(t, first.ID, "checkout.late_payment"); n != 1 {
		t.Errorf("the journal has %d late payments, want 1", n)
	}
	if got := d.Session(t, first.ID); got.Status != "failed" || got.Paid {
		t.Errorf("the first session is %+v, want it failed", got)
	}
	if a := d.Citizen(second.ID).Submit(t, review); a.Status != http.StatusConflict {
		t.Errorf("confirming after the late payment: %d, want 409", a.Status)
	}
	if n := len(d.Collections(t, second)); n != 0 {
		t.Errorf("the operator has %d collections after %s, want none", n, c.ID)
	}
	if n := len(d.Confirmations(t, first)); n != 0 {
		t.Errorf("the ERP has %d confirmations of a late payment, want none", n)
	}
}

// audit checks all sessions of the test: a completed one has one webhook id and one
// accepted confirmation, any other has neither.
func (d *badDays) audit(t *testing.T) {
	rows, err := d.Rows(t, "SELECT session_id, status, payment_ref FROM quittance.sessions")
	if err != nil || len(rows) == 0 {
		t.Fatalf("the journal has %d sessions, %v", len(rows), err)
	}
	for _, row := range rows {
		s := harness.Session{ID: fmt.Sprint(row["session_id"]), PaymentRef: fmt.Sprint(row["payment_ref"])}
		ids := map[string]bool{}
		for _, m := range d.Inbox(t, s.ID) {
			if m.Event.Event == "checkout.completed" {
				ids[m.Event.EventID] = true
			}
		}
		want := 0
		if row["status"] == "completed" {
			want = 1
		}
		accepted := d.Confirmations(t, s)
		if len(ids) != want || len(accepted) != want || (want == 1 && accepted[0].Accepted != 1) {
			t.Errorf("%s is %s, with webhooks %v and confirmations %+v", s.ID, row["status"], ids, accepted)
		}
		if got := d.Session(t, s.ID); got.Status != row["status"] {
			t.Errorf("%s is %s in the journal and %s in the read model", s.ID, row["status"], got.Status)
		}
	}
}
