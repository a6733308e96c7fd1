package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	devstack "quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/internal/connector"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/test/harness"
)

// What can go wrong on the way of a payment, each of it on the whole program
// with a real Kafka. Packages prove the finer points of the same days:
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
	// Before start: what it registers to be cleaned up is to end after the program.
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
		} {
			t.Run(day.name, func(t *testing.T) {
				t.Parallel()
				day.run(t)
			})
		}
	})
	// These trouble everybody, or move everybody's clock.
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

// badDays is an installation and what must have been paid on it.
type badDays struct {
	*harness.Up
	broker *devstack.Kafka // the second one
}

// order is a new session of an order called after the test.
func (d *badDays) order(t *testing.T) harness.Session {
	t.Helper()
	return d.Create(t, strings.ReplaceAll(filepath.Base(t.Name()), " ", "-"))
}

// once checks that a session was paid by one collection, and that everybody was
// told.
func (d *badDays) once(t *testing.T, s harness.Session) {
	t.Helper()
	if got := d.Becomes(t, s.ID, "completed"); !got.Paid {
		t.Error("completed and not paid")
	}
	if c := d.Collections(t, s); len(c) != 1 || c[0].Status != "approved" {
		t.Errorf("the operator has %+v, want one approved payment", c)
	}
	d.told(t, s)
}

func (d *badDays) told(t *testing.T, s harness.Session) {
	t.Helper()
	d.Delivered(t, s.ID, "checkout.completed")
	d.Confirmed(t, s)
	if n := d.Journalled(t, s.ID, "checkout.completed"); n != 1 {
		t.Errorf("the journal has %d completions", n)
	}
}

// pending starts a payment that waits for /control, and returns it as the
// operator has it.
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

// confirmAtOnce may be called beside the test.
func (d *badDays) confirmAtOnce(t *testing.T, s harness.Session, f harness.PageForm) {
	a, err := d.Send(t.Context(), http.MethodPost, d.URL(harness.AtService, f.Action), f.Fields.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	if err != nil || a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/c/"+s.ID+"?") {
		t.Errorf("confirming: %d to %q %v", a.Status, a.Header.Get("Location"), err)
	}
}

// The citizen goes back to the review while the payment waits, and after it, and
// confirms again, also with another number.
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
		t.Errorf("the operator has %+v, want it asked and silent", c)
	}
}

// report is an operator's word about a payment.
func (d *badDays) report(t *testing.T, url, status, amount string) harness.Answer {
	t.Helper()
	return d.Call(t, http.MethodPut, url, fmt.Sprintf(
		`{"financialTransactionId":"4711","externalId":"1","amount":%q,"currency":"XAF","payer":{"partyIdType":"MSISDN","partyId":"242066000077"},"status":%q}`,
		amount, status), "Content-Type", "application/json")
}

// An operator reports, at an address that is really ours, a success of a payment
// that nobody asked for: money, and an operator's case.
func (d *badDays) unknownCollection(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(d.Data(), "master.keys"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := secret.ParseKeys(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	s := d.order(t)
	address := connector.CallbackURL(keys, d.URL(harness.AtService, ""), "mtn", s.ID, uuid.NewString())
	for range 2 {
		if a := d.report(t, address, "SUCCESSFUL", "5075"); a.Status != http.StatusOK {
			t.Fatalf("the report is answered %d", a.Status)
		}
	}
	if n := d.Journalled(t, s.ID, "collection.orphaned"); n < 1 {
		t.Errorf("the journal has %d orphans", n)
	}
	if got := d.Session(t, s.ID); got.Status != "open" || got.Paid {
		t.Errorf("the session is %+v", got)
	}
	d.Citizen(s.ID).Pay(t, "06 600 00 01") // and can be paid
	d.once(t, s)
}

// Whoever knows the ids and not the address only makes us ask the operator.
func (d *badDays) forgedCallback(t *testing.T) {
	s := d.order(t)
	c := d.pending(t, s)
	without := c.CallbackURL[:strings.LastIndex(c.CallbackURL, "/")]
	mac := []byte(c.CallbackURL[len(without)+1:])
	mac[0] ^= 1 // A and @, B and C…: never the same
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
		t.Fatalf("the session is %+v after a forged report", got)
	}
	d.approve(t, c)
	d.once(t, s)
}

func (d *badDays) anotherAmount(t *testing.T) {
	s := d.order(t)
	c := d.pending(t, s)
	d.Control(t, "collections/"+c.ID+"/approve", `{"amount": "1"}`)
	if n := d.Journalled(t, s.ID, "collection.mismatched"); n != 1 {
		t.Errorf("the journal has %d mismatches", n)
	}
	if got := d.Session(t, s.ID); got.Paid || got.Status == "completed" {
		t.Errorf("the session is %+v", got)
	}
	if n := len(d.Confirmations(t, s)); n != 0 {
		t.Errorf("the ERP has %d confirmations", n)
	}
}

// The operator refuses the first payment, the order is paid by a second one, and
// then the operator says that the first was a success after all.
func (d *badDays) bothApproved(t *testing.T) {
	first := d.order(t)
	c := d.pending(t, first)
	d.Control(t, "collections/"+c.ID+"/reject", "")
	d.Becomes(t, first.ID, "failed")
	second := d.order(t)
	if second.ID == first.ID || second.OrderID != first.OrderID {
		t.Fatalf("the second session is %+v", second)
	}
	d.Citizen(second.ID).Pay(t, "06 600 00 01")
	d.once(t, second)
	if a := d.report(t, c.CallbackURL, "SUCCESSFUL", "5075"); a.Status != http.StatusOK {
		t.Fatalf("the report is answered %d", a.Status)
	}
	d.Delivered(t, first.ID, "checkout.late_payment")
	if n := d.Journalled(t, first.ID, "checkout.late_payment"); n != 1 {
		t.Errorf("the journal has %d late payments", n)
	}
	if got := d.Session(t, first.ID); got.Status != "failed" || got.Paid {
		t.Errorf("the first session is %+v", got)
	}
	refused(t, d.Post(t, harness.GuichetKey, fmt.Sprintf(`{"order_id":%q,"amount":5000}`, first.OrderID)), http.StatusConflict, "checkout.order_paid")
}

// source is whose word completed a session.
func (d *badDays) source(t *testing.T, s harness.Session) string {
	t.Helper()
	d.Journalled(t, s.ID, "checkout.completed")
	rows, err := d.Rows(t, fmt.Sprintf("SELECT detail['source'] AS source FROM quittance.journal FINAL WHERE entry_type = 'event' AND session_id = '%s' AND event = 'checkout.completed'", s.ID))
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v %v", rows, err)
	}
	return fmt.Sprint(rows[0]["source"])
}

// One operator's answer is so late that the callback overtakes it; another
// never comes, nor does the callback.
func (d *badDays) operatorSilent(t *testing.T) {
	early, silent := d.Create(t, "callback-before-the-answer"), d.Create(t, "operator-silent")
	for _, s := range []struct {
		harness.Session
		phone string
	}{{early, "06 600 00 01"}, {silent, "06 600 00 08"}} {
		d.Control(t, "mtn", `{"delay": "5m", "times": 1}`)
		d.Citizen(s.ID).Pay(t, s.phone)
		d.Collected(t, s.Session)
	}
	d.Control(t, "mtn", `{"reset": true}`)
	d.once(t, early)
	d.once(t, silent)
	if got := d.source(t, early); got != "callback" {
		t.Errorf("completed by the word of a %s", got)
	}
	if got := d.source(t, silent); got != "enquiry" {
		t.Errorf("completed by the word of an %s", got)
	}
}

// Records that nobody can read are set aside with where they stood, are
// counted, and are in nobody's way.
func (d *badDays) undecodable(t *testing.T) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(program.Local(d.Port+harness.AtBroker)), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumeTopics(schemas.TopicPoisonCommands, schemas.TopicPoisonCollections, schemas.TopicPoisonReadmodel, schemas.TopicPoisonJournal, schemas.TopicPoisonDeliveries),
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
	for partition := range int32(schemas.DefaultPartitions) { // the order's own among them
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

	// Events are read by two, the read model and the journal.
	want := (len(inputs) + 1) * schemas.DefaultPartitions
	for seen := 0; seen < want; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records were set aside within %v", seen, want, harness.Soon)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != mark {
				t.Errorf("%s has %q", r.Topic, r.Value)
				return
			}
			said := map[string]string{}
			for _, h := range r.Headers {
				said[strings.TrimPrefix(h.Key, "quittance-")] = string(h.Value)
			}
			at := said["topic"] + "/" + said["partition"]
			if offset, ok := where[at]; !ok || said["offset"] != fmt.Sprint(offset) || said["error"] == "" {
				t.Errorf("%s has a record with %v, which stood at %s %d", r.Topic, said, at, offset)
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

// poisonCount is a metric; the read model counts under a label.
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

// ClickHouse is killed; it comes back, and the journal with everything.
func (d *badDays) clickHouseAway(t *testing.T) {
	before := d.Create(t, "before-ClickHouse-dies")
	d.Citizen(before.ID).Pay(t, "06 600 00 02")
	old := d.Child(t, "quittance-clickhouse")
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil { // away, and not known to be
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

// Postgres does not answer for half a minute: orders are taken all the while,
// payments under way go on, and nothing is read that could be old.
func (d *badDays) postgresAway(t *testing.T) {
	const away = 30 * time.Second
	under := d.Create(t, "paid-while-Postgres-is-away")
	c := d.pending(t, under)
	server := d.Child(t, "postgres")
	all := append(harness.ChildrenOf(t, server), server)
	resume := func() {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	defer resume()
	// The server first: it starts no other meanwhile.
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
			t.Errorf("GET answers %d %s", a.Status, a.Body)
			read++
		}
		if a := d.Call(t, http.MethodGet, d.URL(harness.AtService, "/c/"+created[0].ID), ""); a.Status != http.StatusServiceUnavailable {
			t.Errorf("the page answers %d", a.Status)
		}
	}
	t.Logf("%d sessions created in %v without Postgres, %d reads refused", len(created), away, refusals)
	if len(created) < 3 {
		t.Errorf("%d sessions created in %v", len(created), away)
	}
	resume()
	for _, s := range created {
		if got := d.Session(t, s.ID); got.Status != "open" || got.OrderID != s.OrderID {
			t.Errorf("created as %+v, is %+v", s, got)
		}
	}
	d.once(t, under)
	d.Citizen(created[0].ID).Pay(t, "06 600 00 01")
	d.once(t, created[0])
}

// The broker is killed and started again. What was not acknowledged is asked
// for again with the same key; a payment under way goes on.
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
	// `up` does not start its broker again: the one it had is started in its place.
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
		t.Errorf("the order has %+v, want %s alone", list, s.ID)
	}
	d.once(t, under)
	d.Citizen(s.ID).Pay(t, "06 600 00 01")
	d.once(t, s)
}

// The agency's ERP and the integrator's receiver are down for minutes.
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
			t.Errorf("an attempt is %+v", m)
		}
	}
}

// attempts counts how often the ERP was asked to accept a session's
// confirmation, whatever it answered.
func (d *badDays) attempts(t *testing.T, s harness.Session) int {
	t.Helper()
	rows, err := d.Rows(t, fmt.Sprintf("SELECT attempt FROM quittance.journal FINAL WHERE session_id = '%s' AND entry_type = 'delivery' AND destination_kind = 'erp' AND outcome != 'deferred'", s.ID))
	if err != nil {
		t.Logf("asking the journal: %v", err)
	}
	return len(rows)
}

// The operator refuses every call until it is too late to ask for the money: it
// is not asked any more, and the session fails.
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
	d.Advance(t, 4*time.Minute) // not_after is two minutes away, the end of the window five
	time.Sleep(2 * time.Second) // everybody knows the time
	d.Control(t, "mtn", `{"reset": true}`)
	d.Becomes(t, s.ID, "failed")
	if c := d.Collections(t, s); len(c) != 0 {
		t.Errorf("the operator was asked too late: %+v", c)
	}
	var told struct {
		Code string `json:"failure_code"`
	}
	if err := json.Unmarshal([]byte(d.Delivered(t, s.ID, "checkout.failed").Body), &told); err != nil || told.Code != "collect.operator_unavailable" {
		t.Errorf("failed with %q, %v", told.Code, err)
	}
}

// The payer approves when the session has given up. Another session of the
// order does not collect while that is undecided, nor afterwards: the money is
// here.
func (d *badDays) successAfterTheWindow(t *testing.T) {
	first := d.order(t)
	d.Citizen(first.ID).Pay(t, "06 600 00 10") // thirty seconds after the window of five minutes
	c := d.Collected(t, first)
	d.Advance(t, 5*time.Minute+2*time.Second)
	d.Becomes(t, first.ID, "failed")

	second := d.order(t)
	review := d.Citizen(second.ID).Review(t, "06 600 00 01")
	if a := d.Citizen(second.ID).Submit(t, review); a.Status != http.StatusConflict {
		t.Errorf("confirming while the first is undecided: %d", a.Status)
	}
	d.Advance(t, 20*time.Minute)
	late := d.Delivered(t, first.ID, "checkout.late_payment")
	if late.Event.Status != "failed" || late.Event.Paid {
		t.Errorf("the late payment is told as %s", late.Body)
	}
	if n := d.Journalled(t, first.ID, "checkout.late_payment"); n != 1 {
		t.Errorf("the journal has %d late payments", n)
	}
	if got := d.Session(t, first.ID); got.Status != "failed" || got.Paid {
		t.Errorf("the session is %+v", got)
	}
	if a := d.Citizen(second.ID).Submit(t, review); a.Status != http.StatusConflict {
		t.Errorf("confirming when the order's money is here: %d", a.Status)
	}
	if n := len(d.Collections(t, second)); n != 0 {
		t.Errorf("the operator was asked %d times more (after %s)", n, c.ID)
	}
	if n := len(d.Confirmations(t, first)); n != 0 {
		t.Errorf("the ERP has %d confirmations of a late payment", n)
	}
}

// audit: over all of it, a completed session has one webhook by its id and one
// accepted confirmation, and no other session has any.
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
