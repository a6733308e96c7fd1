package matcher

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/sessions"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/processor"
	"quittance/test/registries"
)

// treasury is an agency with a bank account to which citizens transfer money and an operator pays out, and the processor of
// checkout sessions.
type treasury struct {
	*office
	sessions *processor.Processor
	told     int // events of the processor that are in Kafka
	commands int
	lost     bool // the read model knows no session
}

func newTreasury(t *testing.T) *treasury {
	t.Helper()
	o := newOffice(t)
	o.house.Seed(t, strings.Replace(registries.Full, "{code: banque, kind: bank,", `{code: banque, kind: bank, offer: bank_transfer, holder: "Trésor public", bank: "BEAC",`, 1))
	o.reg = o.house.Open(t).Registry
	if a, _ := o.reg.StatementAccount(bank); !a.Transfers() {
		t.Fatalf("the account takes no transfers: %+v", a)
	}
	o.journal()
	return &treasury{office: o, sessions: processor.New(t, o.now)}
}

// ref returns the payment reference of a session.
func ref(n int64) string {
	refs, err := checkout.NewReferences(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	for {
		if ref, ok := refs.PaymentRef(n); ok {
			return ref
		}
		n += 1000
	}
}

// session makes a session of 5,000 with a fee of 100 for a transfer.
func (y *treasury) session(n int64) checkout.Session {
	y.t.Helper()
	id := fmt.Sprintf("chs_t%04d", n)
	s := checkout.Session{
		ID: id, ApplicationID: "app", TenantID: registries.AgencyA, OrderID: "order-" + id, Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted,
		PaymentRef: ref(n), TransactionID: "tx-" + id, ExpiresAt: y.now.Add(120 * time.Hour),
		Offers: []checkout.Offer{{ID: checkout.OfferBankTransfer, Channel: checkout.ChannelBankTransfer, Fee: 100}},
	}
	if a := y.sessions.Do(id, checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 100}); a.Code != checkout.CodeOK {
		y.t.Fatalf("%+v", a)
	}
	y.publish()
	return s
}

// publish writes the events of the processor to Kafka.
func (y *treasury) publish() {
	y.t.Helper()
	for ; y.told < len(y.sessions.Events); y.told++ {
		y.produce(schemas.TopicEvents, registries.AgencyA, mapping.FromEvent(y.sessions.Events[y.told]))
	}
}

// Ask implements the processor of Credits.
func (y *treasury) Ask(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
	y.commands++
	var a checkout.Answer
	y.sessions.Change(func() { a = y.sessions.Decide(cmd) })
	y.publish()
	return a, nil
}

// ByPaymentRef implements the sessions of Credits.
func (y *treasury) ByPaymentRef(_ context.Context, ref string) (found checkout.Session, err error) {
	err = sessions.ErrNotFound
	y.sessions.Change(func() {
		for _, s := range y.sessions.Sessions {
			if s.PaymentRef == ref && !y.lost {
				found, err = s, nil
			}
		}
	})
	return found, err
}

func (y *treasury) run(m *Matcher) Summary {
	y.t.Helper()
	s := y.office.runs(m, bank)
	y.agrees(bank)
	return s
}

func (y *treasury) matcher() *Matcher {
	return y.office.matcher(func(c *Config) {
		c.Credits = Credits{Sessions: y, Processor: y, HonoursLate: func(string) bool { return false }}
	})
}

// transfer returns a line of the bank's statement.
func (y *treasury) transfer(s checkout.Session, amount int64) *record.StatementLine {
	l := y.line(bank.Code, y.now, amount, fmt.Sprintf("BK%d", y.n), s.PaymentRef, "")
	l.Kind = "entry"
	return l
}

// found returns a session as it is now.
func (y *treasury) found(id string) checkout.Session { return y.sessions.Session(id) }

// A transfer pays its session and is matched in the same run, beside the payout of an operator.
func TestTransfersPaySessions(t *testing.T) {
	t.Parallel()
	y := newTreasury(t)
	m := y.matcher()
	s, other := y.session(1), y.session(2)
	payout := y.line(bank.Code, y.now, 75_000, "", "", "")
	y.lines(y.transfer(s, 5100), payout, y.transfer(other, 5099), y.line(bank.Code, y.now, 5100, "", ref(99), ""))
	got := y.run(m)
	if paid := y.found(s.ID); !paid.Paid() || paid.Collection.Account != bank.Code {
		t.Fatalf("%+v", paid)
	}
	if short := y.found(other.ID); short.Ended() || len(short.Cases) != 1 || short.Cases[0].Amount != 5099 {
		t.Errorf("%+v", short)
	}
	// The line of the case is matched with the money of the case; the payout has no batch, and nobody has the last reference.
	if len(got.Matches) != 2 || len(got.Breaks) != 2 {
		t.Errorf("matches %+v, breaks %+v", got.Matches, got.Breaks)
	}
	for _, b := range got.Breaks {
		if b.Kind != match.BreakUnmatchedLine {
			t.Errorf("%+v", b)
		}
	}
	commands := y.commands
	y.lines(y.line(bank.Code, y.now, 1, "", "", ""))
	y.run(m)
	if y.commands != commands {
		t.Errorf("%d commands more for what is known", y.commands-commands)
	}
}

// A run dies after the processor was told; the next one tells it again, and nothing is paid twice.
func TestAKilledRunTellsOfTransfersAgain(t *testing.T) {
	t.Parallel()
	y := newTreasury(t)
	m := y.matcher()
	s := y.session(1)
	y.lines(y.transfer(s, 5100))
	m.killed = func(at step) bool { return at == stepProduced }
	if _, err := m.Account(t.Context(), bank); err == nil {
		t.Fatal("not killed")
	}
	m.killed = nil
	if got := y.run(m); len(got.Matches) != 1 {
		t.Errorf("%+v", got)
	}
	if s := y.found(s.ID); !s.Paid() || len(s.Cases) > 0 {
		t.Errorf("%+v", s)
	}
}

// The read model comes back from before the session. The line is a break until the session is found.
func TestTransferOfASessionThatIsFoundLater(t *testing.T) {
	t.Parallel()
	y := newTreasury(t)
	m := y.matcher()
	s := y.session(1)
	y.lost = true
	y.lines(y.transfer(s, 5100))
	if got := y.run(m); len(got.Breaks) != 1 {
		t.Fatalf("%+v", got)
	}
	y.lost = false
	y.now = y.now.Add(24 * time.Hour)
	if got := y.run(m); len(got.Matches) != 1 || len(got.Cleared) != 1 {
		t.Errorf("%+v", got)
	}
	if !y.found(s.ID).Paid() {
		t.Error("not paid")
	}
}

// Two people withdraw a statement whose transfer has paid, and import it again.
func TestTransferOfAWithdrawnStatement(t *testing.T) {
	t.Parallel()
	y := newTreasury(t)
	m := y.matcher()
	s := y.session(1)
	line := y.transfer(s, 5100)
	y.lines(line)
	y.run(m)
	y.lines(withdrawn(line))
	y.run(m)
	if s := y.found(s.ID); len(s.Cases) != 1 || !s.Cases[0].Open() || s.Cases[0].Reason != "no statement has the transfer any more" {
		t.Fatalf("%+v", s.Cases)
	}
	again := *line
	again.Life = 1
	y.lines(&again)
	y.run(m)
	if s := y.found(s.ID); len(s.Cases) != 1 || s.Cases[0].Open() || !s.Paid() {
		t.Errorf("%+v", s.Cases)
	}
}

// The bank reverses a transfer the next day.
func TestTheBankReversesATransfer(t *testing.T) {
	t.Parallel()
	y := newTreasury(t)
	m := y.matcher()
	s := y.session(1)
	y.lines(y.transfer(s, 5100))
	y.run(m)
	y.now = y.now.Add(24 * time.Hour)
	back := y.transfer(s, -5100)
	back.Reversal = true
	y.lines(back)
	y.run(m)
	if s := y.found(s.ID); len(s.Cases) != 1 || s.Cases[0].Reason != "the bank has reversed the transfer" {
		t.Fatalf("%+v", s.Cases)
	}
	y.now = y.now.Add(24 * time.Hour)
	y.run(m) // the break of the reversal tells nothing new
	if s := y.found(s.ID); len(s.Cases) != 1 || !s.Cases[0].Open() {
		t.Errorf("%+v", s.Cases)
	}
}

// Sums of both kinds are in the sheet of a close, and the close holds.
func TestCloseOfAnAccountWithTransfers(t *testing.T) {
	t.Parallel()
	y := newTreasury(t)
	m := y.matcher()
	day := y.now
	s := y.session(1)
	y.lines(y.transfer(s, 5100))
	y.coveredOf(bank.Code, day, day, "accepted")
	y.run(m)
	y.now = y.now.Add(24 * time.Hour)
	y.run(m)
	sheet, err := m.Sheet(t.Context(), bank, day.Format(time.DateOnly))
	if err != nil {
		t.Fatal(err)
	}
	if got := sheet.Sources; got.New != (Count{1, 5100}) || got.Matched != (Count{1, 5100}) || sheet.Lines.Matched != got.Matched || got.End != (Count{}) {
		t.Errorf("%+v %+v", sheet.Sources, sheet.Lines)
	}
	y.approve(sheet)
	y.run(m)
	if err := m.closeApproved(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.full(bank) // waits for the journal
	if closes := y.proved(bank); len(closes) != 1 || closes[0].ChainRows != 1 {
		t.Errorf("%+v", closes)
	}
}
