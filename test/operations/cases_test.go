package operations_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/stack/program"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/statements"
	"quittance/schemas"
	"quittance/test/harness"
)

// Money arrives after the end of its session. Until now its order was blocked for ever.
// Two members of staff honour it on the command line: the session is completed, the
// integrator and the ERP are told, and the order is paid. A completed payment is given
// back in the same way, and its order is free.
func TestOperatorCases(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	up := harness.NewUp(t)
	up.Start(t)
	o := caseOperator{harness.Operator{Up: up}}
	jean, mireille := o.as(t, "Jean Mabiala", "impots"), o.as(t, "Mireille Okemba", "impots")
	o.Refused(t, "QUITTANCE_STAFF_KEY", "staff", "add", "--name", "Paul", "--agency", "impots")
	o.Refused(t, "is active", "staff", "add", "--name", "JEAN mabiala")
	o.Says(t, "Mireille Okemba", "staff", "list")

	late := o.Create(t, "late")
	o.Citizen(late.ID).Pay(t, "06 600 00 10")
	o.Collected(t, late)
	o.Advance(t, 5*time.Minute+2*time.Second) // the operator approves thirty seconds after the window
	o.Becomes(t, late.ID, "failed")
	o.Advance(t, time.Minute)
	c := o.opened(t, late.ID, "late_payment")
	o.Says(t, "staff decide: 5075 XAF of kind late_payment", "sessions", "find", "late")
	if c.OrderID != "late" || c.Amount == 0 || c.Currency != "XAF" || c.OpenedAt == "" {
		t.Errorf("the case is %+v", c)
	}
	if a := o.Post(t, harness.GuichetKey, `{"order_id":"late","amount":5000,"service_code":"patente"}`); !strings.Contains(string(a.Body), "checkout.order_under_review") {
		t.Errorf("another session of the order: %d %s", a.Status, a.Body)
	}
	o.Refused(t, "set QUITTANCE_STAFF_KEY", "cases", "propose", c.ID, "honour", "--reason", "r")
	jean.Refused(t, "RESOLUTION: a case of kind late_payment is resolved by one of: honour; refund; write_off", "cases", "propose", c.ID, "acknowledge", "--reason", "r")
	jean.Refused(t, "--reference", "cases", "propose", c.ID, "refund", "--reason", "r")
	jean.Says(t, "Another person approves it with `quittance-dev cases approve "+c.ID+"`", "cases", "propose", c.ID, "honour", "--reason", "the citizen waits")
	jean.Refused(t, "another person", "cases", "approve", c.ID)
	mireille.Says(t, "carried_out, approved by Mireille Okemba", "cases", "approve", c.ID)
	o.Becomes(t, late.ID, "completed")
	o.Delivered(t, late.ID, "checkout.completed")
	o.Confirmed(t, late)
	mireille.Refused(t, "was closed at", "cases", "reject", c.ID, "--reason", "r")
	if text := o.Says(t, "late: the session had ended before", "sessions", "find", "late"); !strings.Contains(text, "honour by Jean Mabiala: carried_out, approved by Mireille Okemba") {
		t.Errorf("the page of the late payment lacks its case:\n%s", text)
	}
	ports := filepath.Join(t.TempDir(), "ports.yaml") // people of douanes approve with passkeys
	if err := os.WriteFile(ports, []byte("agencies: [{id: 018f0000-0000-7000-8000-0000000000f2, slug: ports, name: Ports}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var seeded any
	o.JSON(t, &seeded, "seed", ports)
	other := o.as(t, "Paul Ngoma", "ports")
	other.Refused(t, "nothing has this order", "sessions", "find", "late")
	other.Refused(t, "SESSION: no session", "sessions", "show", late.ID)

	paid := o.Create(t, "returned")
	o.Citizen(paid.ID).Pay(t, "06 600 00 01")
	o.Becomes(t, paid.ID, "completed")
	var opened struct{ ID string }
	jean.JSON(t, &opened, "cases", "open", paid.ID, "--reason", "wrong taxpayer")
	if c := o.opened(t, paid.ID, "refund_request"); c.ID != opened.ID {
		t.Errorf("the case is %+v, want %s", c, opened.ID)
	}
	mireille.Says(t, "refund", "cases", "propose", opened.ID, "refund", "--reason", "wrong taxpayer", "--reference", "wire 7")
	mireille.Says(t, "withdrawn", "cases", "reject", opened.ID, "--reason", "withdrawn")
	mireille.Says(t, "--proposal 2", "cases", "propose", opened.ID, "refund", "--reason", "wrong taxpayer", "--reference", "wire 8")
	o.digest(t, opened.ID)
	jean.Refused(t, "say which", "cases", "approve", opened.ID)
	jean.Says(t, "wire 8", "cases", "approve", opened.ID, "--proposal", "2")
	o.Create(t, "returned")
	// The ERP has a confirmation of the money: a person tells it.
	o.opened(t, paid.ID, "reversal")

	o.oldPartner(t, jean, mireille)
	o.casesWithoutASession(t)

	o.Misused(t, "--kind", "cases", "list", "--kind", "nothing")
	o.Refused(t, "no agency", "cases", "list", "--agency", "nobody")
	o.Refused(t, "no case that you may see", "cases", "show", "case_nothing")
	jean.Refused(t, "SESSION: no session", "cases", "open", "chs_nothing", "--reason", "r")
	o.Says(t, "is revoked", "staff", "revoke", "jean mabiala")
	jean.Refused(t, "is revoked", "cases", "list")
	o.onStatement(t, late, paid)
}

// digest gives Jean an address, to which a digest comes that names a case.
func (o caseOperator) digest(t *testing.T, caseID string) {
	t.Helper()
	o.Refused(t, "--email: must be an e-mail address", "staff", "address", "Jean Mabiala", "--email", "jean.mabiala")
	o.Refused(t, "--email: Jean Mabiala has no address yet", "staff", "address", "Jean Mabiala", "--language", "en")
	o.Misused(t, "say what to change", "staff", "address", "Jean Mabiala")
	o.Misused(t, "--language", "staff", "address", "Jean Mabiala", "--language", "ln")
	for _, said := range []string{
		o.Says(t, "in fr", "staff", "address", "Jean Mabiala", "--email", "jean.mabiala@example.org"),
		o.Says(t, "in en", "staff", "address", "Jean Mabiala", "--language", "en"),
		o.Says(t, "@example.org", "staff", "list"),
	} {
		if strings.Contains(said, "jean.mabiala@") {
			t.Errorf("the address is not masked: %s", said)
		}
	}
	o.Advance(t, 15*time.Minute)
	harness.Eventually(t, "the digest is sent", func() error {
		a := o.Call(t, http.MethodGet, o.URL(harness.AtSimulators, "/inbox/mail"), "")
		for _, want := range []string{"jean.mabiala@example.org", "cases to approve: 1", caseID, "quittance cases approve CASE"} {
			if !strings.Contains(string(a.Body), want) {
				return fmt.Errorf("no letter has %q: %s", want, a.Body)
			}
		}
		return nil
	})
	o.Says(t, "is removed", "staff", "address", "Jean Mabiala", "--remove")
	o.Says(t, "has no address", "staff", "address", "Jean Mabiala", "--remove")
}

// onStatement checks that the operator's statement has the money that the service expects of
// sessions, with its references.
func (o caseOperator) onStatement(t *testing.T, sessions ...harness.Session) {
	t.Helper()
	for _, s := range sessions {
		var rows []map[string]any
		harness.Eventually(t, "the money is expected", func() (err error) {
			rows, err = o.Rows(t, fmt.Sprintf(`SELECT operator_ref, payment_ref, gross, toString(local_date) AS day FROM quittance.expected_money FINAL WHERE session_id = '%s' AND kind = 'received'`, s.ID))
			if err == nil && len(rows) != 1 {
				err = fmt.Errorf("%d entries of %s", len(rows), s.ID)
			}
			return err
		})
		file := o.Call(t, http.MethodGet, o.URL(harness.AtSimulators, fmt.Sprintf("/control/statements/mtn?agency=impots&day=%s", rows[0]["day"])), "")
		found := 0
		read, err := statements.Read(bytes.NewReader(file.Body), statements.Account{Code: "mtn", Number: "46733123454", Currency: "XAF", Profile: "mtn"}, func(l *statements.Line) error {
			if l.OperatorRef == rows[0]["operator_ref"] && l.PaymentRef == rows[0]["payment_ref"] && fmt.Sprint(l.Amount) == fmt.Sprint(rows[0]["gross"]) && l.Fee > 0 {
				found++
			}
			return nil
		})
		if err != nil || read.Refused() || found != 1 {
			t.Errorf("%d lines of %v, %v, %+v in\n%s", found, rows[0], err, read, file.Body)
		}
	}
}

// An operator reports money of a session that nobody knows, twice, and a record cannot be
// read. Operations close both cases. Until now the journal knew nothing of it, and the
// money stayed in the receipts. A rebuild of the journal brings everything back.
func (o caseOperator) casesWithoutASession(t *testing.T) {
	t.Helper()
	cfg := kafka.Config{Brokers: []string{program.Local(o.Port + harness.AtBroker)}}
	cl, err := cfg.Producer()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topology, err := kafka.Load(t.Context(), cfg, cl)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := schemas.NewClient(o.URL(harness.AtRegistry, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), registry, false)
	if err != nil {
		t.Fatal(err)
	}
	id := checkout.NewSessionID(time.Now(), 0, [16]byte{1})
	report, err := commands.CheckoutProtocol(codec, topology).Encode(checkout.Command{At: time.Now().UTC(), SessionID: id, Live: true, Do: checkout.Outcome{
		CollectionID: "lost", Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 70, Currency: "XAF", OperatorRef: "op-lost",
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report.Topic = topology.Name(schemas.TopicCommands)
	signer, err := commands.NewSigner(o.Keys(t), "ingress")
	if err != nil {
		t.Fatal(err)
	}
	signer.Sign(report)
	again := *report
	junk := &kgo.Record{Topic: topology.Name(schemas.TopicWebhooks), Value: []byte("unreadable")}
	if err := cl.ProduceSync(t.Context(), report, &again, junk).FirstErr(); err != nil {
		t.Fatal(err)
	}

	one, two := o.as(t, "Anne Loemba", ""), o.as(t, "Luc Bouanga", "")
	lost, poison := o.opened(t, id, "orphan"), o.opened(t, "", "poison")
	one.Says(t, "Another person approves it", "cases", "propose", lost.ID, "refund", "--reason", "not ours", "--reference", "wire 9")
	two.Says(t, "carried_out, approved by Luc Bouanga", "cases", "approve", lost.ID)
	two.Says(t, "Another person approves it", "cases", "propose", poison.ID, "acknowledge", "--reason", "a test wrote it")
	one.Says(t, "carried_out, approved by Anne Loemba", "cases", "approve", poison.ID)
	one.Refused(t, "was closed at", "cases", "propose", lost.ID, "refund", "--reason", "not ours", "--reference", "wire 10")

	journalled := func() error {
		rows, err := o.Rows(t, fmt.Sprintf(`SELECT kind, state, resolution, resolved_by, approved_by, toString(proposals) AS proposals FROM quittance.cases WHERE case_id IN ('%s', '%s') ORDER BY kind`, lost.ID, poison.ID))
		if want := "[map[approved_by:Luc Bouanga kind:orphan proposals:1 resolution:refund resolved_by:Anne Loemba state:closed] " +
			"map[approved_by:Anne Loemba kind:poison proposals:1 resolution:acknowledge resolved_by:Luc Bouanga state:closed]]"; err != nil || fmt.Sprint(rows) != want {
			return fmt.Errorf("the cases are %v, %w", rows, err)
		}
		rows, err = o.Rows(t, fmt.Sprintf(`SELECT movement, toString(total_amount) AS total, reference FROM quittance.receipts WHERE session_id = '%s' ORDER BY movement`, id))
		if want := "[map[movement:orphan reference: total:70] map[movement:reversal reference:wire 9 total:-70]]"; err != nil || fmt.Sprint(rows) != want {
			return fmt.Errorf("the receipts are %v, %w", rows, err)
		}
		return nil
	}
	harness.Eventually(t, "the journal has the exits", journalled)
	for _, table := range []string{"receipt_rows", "journal"} {
		if a, err := o.Send(t.Context(), http.MethodPost, o.URL(harness.AtClickHouse, "/"), "TRUNCATE TABLE quittance."+table); err != nil || a.Status != http.StatusOK {
			t.Fatalf("%v %d %s", err, a.Status, a.Body)
		}
	}
	var rebuilt struct {
		Equal      bool
		CaseEvents int `json:"case_events"`
	}
	if o.JSON(t, &rebuilt, "rebuild", "journal", "--yes"); !rebuilt.Equal || rebuilt.CaseEvents < 8 {
		t.Errorf("the rebuild says %+v", rebuilt)
	}
	if err := journalled(); err != nil {
		t.Errorf("after a rebuild: %v", err)
	}
}

// An ERP refuses two confirmations. Nobody was told of them but by a gauge of deliveries.
// Now each is a case: of one, two people have the ERP told once more; of the other they
// record what the ERP says. All that they do is in the journal.
func TestConfirmationCases(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	up := harness.NewUp(t)
	up.Start(t)
	o := caseOperator{harness.Operator{Up: up}}
	jean, mireille := o.as(t, "Jean Mabiala", "impots"), o.as(t, "Mireille Okemba", "impots")
	o.Control(t, "erp/impots", `{"refuse": {"status": 422, "code": "due_closed"}}`)
	refused := map[string]harness.Session{}
	for _, order := range []string{"mended", "by hand"} {
		s := o.Create(t, order)
		o.Citizen(s.ID).Pay(t, "06 600 00 01")
		o.Becomes(t, s.ID, "completed")
		refused[order] = s
	}
	mended, byHand := o.opened(t, refused["mended"].ID, "confirmation"), o.opened(t, refused["by hand"].ID, "confirmation")
	o.Says(t, "http_422", "cases", "show", mended.ID)
	o.Says(t, "DUE-mended", "cases", "show", mended.ID)
	jean.Refused(t, "RESOLUTION: a case of kind confirmation is resolved by one of: refund; retry; recorded_by_hand", "cases", "propose", mended.ID, "acknowledge", "--reason", "r")
	jean.Refused(t, "--reference", "cases", "propose", byHand.ID, "recorded_by_hand", "--reason", "r")

	o.Control(t, "erp/impots", `{"reset": true}`)
	jean.Says(t, "Another person approves it", "cases", "propose", mended.ID, "retry", "--reason", "the due is open again")
	mireille.Says(t, "carried_out, approved by Mireille Okemba", "cases", "approve", mended.ID)
	o.Confirmed(t, refused["mended"])
	o.Control(t, "erp/impots", `{"refuse": {"status": 422, "code": "due_closed"}}`)
	mireille.Says(t, "Another person approves it", "cases", "propose", byHand.ID, "recorded_by_hand", "--reason", "entered at the desk", "--reference", "GL 2026-7")
	jean.Says(t, "carried_out, approved by Jean Mabiala", "cases", "approve", byHand.ID)
	harness.Eventually(t, "no confirmation is outstanding", func() error {
		var list []struct{ ID, Kind string }
		if o.JSON(t, &list, "deliveries", "list", "--state", "needs_operator"); len(list) != 0 {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
	o.Says(t, "every completed payment is accepted", "doctor", "erp")
	o.Says(t, "the work of a killed instance waits 2s", "doctor", "webhook")
	o.Says(t, "the work of a killed instance waits 2s", "doctor", "checkout")
	if c := o.Confirmations(t, refused["by hand"]); len(c) != 0 {
		t.Errorf("the ERP has accepted %+v", c)
	}

	// An operator that does not answer.
	o.Says(t, "none is away", "doctor", "collect")
	o.Control(t, "mtn", `{"status": 503}`)
	unanswered := o.Create(t, "operator away")
	o.Citizen(unanswered.ID).Pay(t, "06 600 00 01")
	harness.Eventually(t, "doctor names the operator", func() error {
		o.Advance(t, time.Minute)
		if found := o.Says(t, "operators", "doctor", "collect"); !strings.Contains(found, "WARNING: without an answer: mtn/test since ") {
			return errors.New(found)
		}
		return nil
	})
	o.Control(t, "mtn", `{"reset": true}`)

	// An ERP that is away opens a case after a day, which closes when it accepts.
	o.Control(t, "erp/impots", `{"reset": true}`)
	o.Control(t, "erp/impots", `{"status": 503}`)
	away := o.Create(t, "away")
	o.Citizen(away.ID).Pay(t, "06 600 00 01")
	o.Becomes(t, away.ID, "completed")
	o.Advance(t, 24*time.Hour+time.Second)
	c := o.opened(t, away.ID, "confirmation")
	o.Says(t, "not accepted in 24 h", "cases", "show", c.ID)
	o.Control(t, "erp/impots", `{"reset": true}`)
	o.Advance(t, 24*time.Hour) // the next call is due
	o.Confirmed(t, away)
	harness.Eventually(t, "the case closes by itself", func() error {
		var shown struct{ State, Resolution string }
		if o.JSON(t, &shown, "cases", "show", c.ID); shown.State != "closed" || shown.Resolution != "accepted" {
			return fmt.Errorf("%+v", shown)
		}
		return nil
	})

	o.replaysByTheServicesClock(t)

	for session, events := range map[string][]string{
		refused["mended"].ID:  {"confirmation.refused", "case.proposed", "case.approved", "case.resolved", "confirmation.retried", "confirmation.accepted"},
		refused["by hand"].ID: {"confirmation.refused", "case.proposed", "case.approved", "case.resolved", "confirmation.recorded"},
	} {
		for _, event := range events {
			harness.Eventually(t, event, func() error {
				if n := o.Journalled(t, session, event); n != 1 {
					return fmt.Errorf("the journal has %s %d times", event, n)
				}
				return nil
			})
		}
	}
}

// replaysByTheServicesClock replays after the clock was moved by two days. Records have the
// machine's time: half an hour of the service's clock holds what came after the last move.
func (o caseOperator) replaysByTheServicesClock(t *testing.T) {
	t.Helper()
	type done struct {
		Since, Until time.Time
		Events       int
	}
	replay := func(since string) (d done) {
		o.JSON(t, &d, "replay", "checkout.events", "--to", "readmodel", "--dry-run", "--since", since)
		return d
	}
	some, all := replay("30m"), replay("3d")
	if some.Events == 0 || some.Events >= all.Events {
		t.Errorf("half an hour has %d events, three days %d", some.Events, all.Events)
	}
	if ahead := time.Until(some.Until); some.Until.Sub(some.Since) != 30*time.Minute || ahead < 47*time.Hour || ahead > 49*time.Hour {
		t.Errorf("the replay is of %v to %v", some.Since, some.Until)
	}
	if again := replay(some.Since.Format(time.RFC3339)); again.Events != some.Events {
		t.Errorf("since %v there are %d events, want %d", some.Since, again.Events, some.Events)
	}
}

// caseOperator runs the commands for staff and cases.
type caseOperator struct{ harness.Operator }

// as makes a member of staff, whose commands the result runs.
func (o caseOperator) as(t *testing.T, name, agency string) caseOperator {
	t.Helper()
	var made struct{ ID, Key string }
	o.JSON(t, &made, "staff", "add", "--name", name, "--agency", agency)
	if made.ID == "" || !strings.HasPrefix(made.Key, "st_") {
		t.Fatalf("staff add prints %q and a key of %d letters", made.ID, len(made.Key))
	}
	return caseOperator{harness.Operator{Up: o.Up, StaffKey: made.Key}}
}

// caseShown is a case as `cases list --json` prints it.
type caseShown struct {
	ID, Kind, State, Currency string
	SessionID                 string `json:"session_id"`
	OrderID                   string `json:"order_id"`
	OpenedAt                  string `json:"opened_at"`
	Amount                    int64
}

// opened waits for an open case of a session.
func (o caseOperator) opened(t *testing.T, session, kind string) (c caseShown) {
	t.Helper()
	harness.Eventually(t, "a case of kind "+kind, func() error {
		var list []caseShown
		o.JSON(t, &list, "cases", "list", "--kind", kind, "--state", "open")
		for _, c = range list {
			if c.SessionID == session {
				return nil
			}
		}
		return fmt.Errorf("%+v", list)
	})
	return c
}

// The agency's policy is late_payments: honour. A card is approved half a minute after the
// end of its session: nobody has to do anything, and everybody learns of the payment.
func TestPolicyHonoursALatePayment(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	up := harness.NewUp(t)
	registry, err := os.ReadFile(filepath.Join(harness.Root, up.Registry))
	if err != nil {
		t.Fatal(err)
	}
	const before = "    default_service: patente\n"
	if strings.Count(string(registry), before) != 1 {
		t.Fatalf("the demo registry does not have %q once", before)
	}
	up.Registry = filepath.Join(up.Dir, "honour.yaml")
	if err := os.WriteFile(up.Registry, []byte(strings.Replace(string(registry), before, before+"    late_payments: honour\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	up.Start(t)
	o := caseOperator{harness.Operator{Up: up}}

	s := o.CreateFrom(t, harness.GuichetKey, `{"order_id":"late card","amount":5000,"currency":"EUR","service_code":"patente","metadata":{"erp_due_ref":"DUE-late-card"}}`)
	o.byCard(t, s, "4000 0000 0000 0010") // approved thirty seconds after the window
	o.Advance(t, 15*time.Minute+2*time.Second)
	if s := o.Becomes(t, s.ID, "failed"); s.Paid {
		t.Errorf("at its end the session is %+v", s)
	}
	o.Delivered(t, s.ID, "checkout.failed")
	o.Advance(t, time.Minute)
	if s := o.Becomes(t, s.ID, "completed"); !s.Paid {
		t.Errorf("with its late money the session is %+v", s)
	}

	var webhook struct {
		Late, Paid      bool
		Status, Channel string
		OrderID         string `json:"order_id"`
		Amount          int64
		CompletedAt     time.Time `json:"completed_at"`
		TransactionID   string    `json:"transaction_id"`
	}
	if err := json.Unmarshal([]byte(o.Delivered(t, s.ID, "checkout.completed").Body), &webhook); err != nil {
		t.Fatal(err)
	}
	if !webhook.Late || !webhook.Paid || webhook.Status != "completed" || webhook.Channel != "CARD" || webhook.OrderID != "late card" || webhook.Amount != 5000 || webhook.CompletedAt.IsZero() {
		t.Errorf("the webhook says %+v", webhook)
	}
	o.Delivered(t, s.ID, "checkout.late_payment")
	o.Confirmed(t, s)
	if c := o.Confirmations(t, s); len(c) != 1 || c[0].Accepted != 1 || c[0].Body.Amount != 5000 || c[0].Body.DueRef != "DUE-late-card" || c[0].TransactionID != webhook.TransactionID {
		t.Errorf("the ERP has accepted %+v", c)
	}
	for _, event := range []string{"checkout.failed", "checkout.late_payment", "case.resolved", "checkout.completed"} {
		if n := o.Journalled(t, s.ID, event); n != 1 {
			t.Errorf("the journal has %s %d times", event, n)
		}
	}

	// The case was opened and closed at once, by the policy.
	var list []caseShown
	harness.Eventually(t, "the case is listed", func() error {
		o.JSON(t, &list, "cases", "list", "--kind", "late_payment", "--state", "closed")
		if len(list) != 1 || list[0].SessionID != s.ID {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
	o.Says(t, "policy", "cases", "show", list[0].ID)
	if o.JSON(t, &list, "cases", "list", "--state", "open"); len(list) != 0 {
		t.Errorf("open are %+v", list)
	}
	if a := o.Post(t, harness.GuichetKey, `{"order_id":"late card","amount":5000,"currency":"EUR","service_code":"patente"}`); !strings.Contains(string(a.Body), "checkout.order_paid") {
		t.Errorf("another session of the order: %d %s", a.Status, a.Body)
	}
}

var cardPage = regexp.MustCompile(`href="(http://[^"]+/card/pay/[^"]+)"`)

// byCard pays a session with a card number on the simulated acquirer's page.
func (o caseOperator) byCard(t *testing.T, s harness.Session, number string) {
	t.Helper()
	a := o.Call(t, http.MethodGet, o.URL(harness.AtService, "/c/"+s.ID+"?lang=en&step=review&offer=card"), "")
	o.Citizen(s.ID).Confirm(t, harness.ReadForm(string(a.Body)))
	var page *url.URL
	harness.Eventually(t, "the link to the acquirer", func() error {
		m := cardPage.FindStringSubmatch(o.Citizen(s.ID).Page(t))
		if m == nil {
			return errors.New("there is none")
		}
		var err error
		page, err = url.Parse(html.UnescapeString(m[1]))
		return err
	})
	form := url.Values{"token": {page.Query().Get("token")}, "action": {"pay"}, "card": {number}}
	page.RawQuery = ""
	if a := o.Call(t, http.MethodPost, page.String(), form.Encode(), "Content-Type", "application/x-www-form-urlencoded"); a.Status != http.StatusSeeOther {
		t.Fatalf("the acquirer answers %d %s", a.Status, a.Body)
	}
}
