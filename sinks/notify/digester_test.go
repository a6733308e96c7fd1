package notify_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/dev/staff"
	"quittance/internal/cases"
	"quittance/internal/connector"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/erp"
	"quittance/internal/identity"
	messages "quittance/internal/notify"
	"quittance/internal/passkeys"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/money"
	"quittance/money/localtime"
	"quittance/schemas"
	"quittance/schemas/record"
	sinkerp "quittance/sinks/erp"
	"quittance/sinks/notify"
	deliverytest "quittance/test/deliveries"
	"quittance/test/registries"
)

// office is a world with a registry, and staff who have addresses.
type office struct {
	*world
	registries.House
	instance registries.Instance
	cases    *cases.Store
	// jean and mireille are of the agency, op is of operations.
	jean, mireille, op identity.MintedStaff
}

func newOffice(t *testing.T) *office {
	t.Helper()
	w := newWorld(t)
	o := &office{world: w, House: registries.House{DSN: w.Bench.DSN, Pool: w.Bench.Pool, Keys: w.keys}, cases: cases.NewStore(w.Bench.Pool).Verifying(w.keys)}
	o.Seed(t, registries.Full)
	o.instance = o.Open(t)
	o.jean, o.mireille, o.op = o.staff("Jean", "impots", money.French), o.staff("Mireille", "impots", money.English), o.staff("Op", "", money.French)
	if _, err := identity.AddStaff(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "", identity.StaffRequest{Name: "Silent"}, w.Now()); err != nil {
		t.Fatal(err) // of operations, without an address
	}
	return o
}

func (o *office) staff(name, agency string, language money.Language) identity.MintedStaff {
	o.t.Helper()
	m, err := identity.AddStaff(o.t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "", identity.StaffRequest{
		Name: name, Agency: agency, Contact: identity.StaffContactRequest{Email: strings.ToLower(name) + "@example.org", Language: language},
	}, o.Now())
	if err != nil {
		o.t.Fatal(err)
	}
	return m
}

// digester makes an instance of the digester.
func (o *office) digester(sender notify.DigestSender) *notify.Digester {
	o.t.Helper()
	d, err := notify.NewDigester(notify.DigesterConfig{
		Kafka: o.Kafka, Codec: o.Codec, Digests: digests.NewStore(o.House.Pool), Awaiting: o.cases.AwaitingApproval,
		Staff: func(ctx context.Context) ([]identity.StaffEntry, error) {
			return identity.ListStaff(ctx, o.House.Pool, signed.NewVerifier(o.House.Keys))
		},
		FailingERPs: func(ctx context.Context) ([]deliveries.Failing, error) { return o.Store.Failing(ctx, sinkerp.Kind) },
		Registry:    o.instance.Registry, Keys: o.keys, Sender: sender, Now: o.Now,
		Log: slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return d
}

// calls is the part of a digester that reads calls.
type calls struct{ *notify.Digester }

func (c calls) Run(ctx context.Context) error { return c.RunCalls(ctx) }

// proposed opens a case and proposes how to resolve it.
func (o *office) proposed(id string, by identity.MintedStaff) {
	o.t.Helper()
	err := o.cases.Apply(o.t.Context(), []cases.Case{{
		Case: casework.Case{ID: id, Kind: checkout.CaseLatePayment, Amount: 987654, Currency: "XAF", OpenedAt: o.Now()}, CollectionID: "c",
		InSession: true, Sequence: 4, SessionID: "chs_" + id, AgencyID: registries.AgencyA, ApplicationID: registries.AppA, OrderID: "order-" + id, Mode: "live",
		Clerks: []string{}, Evidence: map[string]string{},
	}}, nil)
	if err == nil {
		_, err = o.cases.Propose(o.t.Context(), cases.By{Staff: by.Staff, Origin: "desk", Signer: o.House.Keys}, cases.Request{CaseID: id, Resolution: checkout.ResolutionRefund, Reference: "wire 7", Reason: "paid twice"}, o.Now())
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// erpFails records that an ERP has not accepted a confirmation for a time. With an outcome of
// its own an operator decides about the confirmation, and the ERP is well.
func (o *office) erpFails(agencyID string, live bool, since time.Duration, outcome deliveries.Outcome) {
	o.t.Helper()
	a := &record.Attempt{
		Delivery: record.Delivery{
			DeliveryID: "dlv_" + erp.ID(agencyID, live), Kind: string(sinkerp.Kind), DestinationID: erp.ID(agencyID, live), EventID: "tx-" + erp.ID(agencyID, live), Event: "confirmation",
			TenantID: agencyID, SessionID: "chs_x", Livemode: live, OccurredAt: o.Now().Add(-since), Attempt: 1, Body: []byte("{}"),
		},
		Outcome: string(outcome), At: o.Now().Add(-since), HTTPStatus: 503, Reason: "http_503",
	}
	if outcome == deliveries.OutcomeFailed {
		a.NextAttemptAt = o.Now().Add(time.Hour)
	}
	if err := o.Store.Apply(o.t.Context(), []*record.Attempt{a}, nil); err != nil {
		o.t.Fatal(err)
	}
}

// called writes calls of an operator to Kafka: their outcome by their age.
func (o *office) called(operator, agencyID string, outcomes map[time.Duration]string) {
	o.t.Helper()
	var out []*kgo.Record
	for age, outcome := range outcomes {
		value, err := o.Codec.Encode(&record.Call{
			Kind: "enquire", CollectionID: "c-" + age.String(), SessionID: "chs_x", ApplicationID: registries.AppA, TenantID: agencyID, Livemode: true, OfferID: checkout.OfferMomo,
			Operator: operator, Amount: 5, Currency: "XAF", Enquiry: 1, At: o.Now().Add(-age), DurationMs: 20_000, Outcome: outcome, Fault: "enquiring: " + outcome,
		})
		if err != nil {
			o.t.Fatal(err)
		}
		out = append(out, &kgo.Record{Topic: o.Kafka.Prefix + schemas.TopicCalls, Key: []byte("c-" + age.String()), Value: value})
	}
	o.publish(out...)
}

// paid writes calls of an operator about payouts to Kafka: their outcome by their age.
func (o *office) paid(operator, agencyID string, outcomes map[time.Duration]string) {
	o.t.Helper()
	var out []*kgo.Record
	for age, outcome := range outcomes {
		doing := "paying"
		if outcome == "network" {
			doing = connector.DoingOpenLine // the database of keys is away, and the operator was not called
		}
		value, err := o.Codec.Encode(&record.PayoutCall{
			Kind: "pay", PayoutRef: "PO-" + age.String(), Batch: "bat_x", Position: 1, Attempt: 1, TenantID: agencyID, Livemode: true, Operator: operator, Account: operator + "_payout",
			Amount: 5, Currency: "XAF", At: o.Now().Add(-age), DurationMs: 20_000, Outcome: outcome, Fault: doing + ": " + outcome,
		})
		if err != nil {
			o.t.Fatal(err)
		}
		out = append(out, &kgo.Record{Topic: o.Kafka.Prefix + schemas.TopicPayoutCalls, Key: []byte("PO-" + age.String()), Value: value})
	}
	o.publish(out...)
}

// letters returns the e-mails that a person got, by the beginning of the address.
func (o *office) letters(to string) (texts []string) {
	o.t.Helper()
	for _, l := range o.sim.Inbox(provider.ChannelEmail) {
		if l.To == to+"@example.org" {
			texts = append(texts, l.Subject+"\n"+plain(l.Text))
		}
	}
	return texts
}

// arrive waits until people have so many letters, and until nothing waits.
func (o *office) arrive(want map[string]int) {
	o.t.Helper()
	for to, n := range want {
		deliverytest.Eventually(o.t, to+" has "+strconv.Itoa(n)+" letters", func() bool { return len(o.letters(to)) >= n })
	}
	deliverytest.Eventually(o.t, "nothing waits", func() bool {
		return o.count(`SELECT count(*) FROM digests WHERE sent_at IS NULL`) == 0 && o.count(`SELECT count(*) FROM deliveries WHERE kind = 'notify' AND state <> 'delivered'`) == 0
	})
	for to, n := range want {
		if got := o.letters(to); len(got) != n {
			o.t.Errorf("%s has %d letters: %q", to, len(got), got)
		}
	}
}

func has(t *testing.T, text string, want, hidden []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in %q", w, text)
		}
	}
	for _, h := range hidden {
		if strings.Contains(text, h) {
			t.Errorf("%q is in %q", h, text)
		}
	}
}

// Two instances tell each member of staff once what waits for the person, in the person's
// language: not the own proposals, not the ERPs of others. A later digest has only what is new.
// No topic, row or log has an address.
func TestStaffDigests(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.start()
	instances := []*notify.Digester{o.digester(o.sender), o.digester(o.sender)}
	deliverytest.Start(t, calls{instances[0]}, calls{instances[1]})
	o.proposed("case_first", o.jean)
	o.erpFails(registries.AgencyA, true, 20*time.Minute, deliveries.OutcomeFailed)
	o.erpFails(registries.AgencyA, false, 20*time.Minute, deliveries.OutcomeNeedsOperator) // a confirmation that it refused
	o.erpFails(registries.AgencyB, true, 20*time.Minute, deliveries.OutcomeFailed)         // the registry has no such ERP
	o.called("mtn", registries.AgencyA, map[time.Duration]string{9 * time.Minute: "pending", 8 * time.Minute: "timeout", time.Minute: "server"})
	o.called("card", registries.AgencyB, map[time.Duration]string{8 * time.Minute: "network", time.Minute: "network"})
	// Airtel collects and does not pay: nobody was told of that.
	o.paid("airtel", registries.AgencyA, map[time.Duration]string{8 * time.Minute: "timeout", time.Minute: "server"})
	o.paid("mtn", registries.AgencyA, map[time.Duration]string{8 * time.Minute: "network", time.Minute: "network"})
	o.called("airtel", registries.AgencyA, map[time.Duration]string{8 * time.Minute: "timeout", 2 * time.Minute: "timeout", time.Minute: "refused", 7 * time.Hour: "timeout"})
	deliverytest.Eventually(t, "the calls are recorded", func() bool {
		return o.count(`SELECT count(*) FROM operator_answers WHERE failed_at - failing_since > interval '5 minutes'`) == 3 &&
			o.count(`SELECT count(*) FROM operator_answers WHERE operator = 'airtel' AND NOT payouts AND failing_since IS NULL AND answered_at IS NOT NULL`) == 1
	})
	stop := deliverytest.Start(t, instances[0], instances[1])
	o.arrive(map[string]int{"jean": 1, "mireille": 1, "op": 1})
	amounts := []string{"987", "order-", "chs_", "http", "airtel/live -", "mtn/live/payouts", "impots/test", "Mabiala"}
	has(t, o.letters("jean")[0], []string{"systèmes des administrations indisponibles : 1, opérateurs indisponibles : 2", "impots/live - ", "mtn/live - ", "airtel/live/payouts - ", "quittance deliveries list --kind erp"},
		append(amounts, "case_first", "quittance cases", "card/live"))
	has(t, o.letters("mireille")[0], []string{"Quittance – cases to approve: 1, agencies’ systems away: 1, operators away: 2", "case_first (late_payment, impots) - ", "quittance cases approve CASE", "impots/live", "mtn/live"},
		append(amounts, "Bonjour", "card/live"))
	has(t, o.letters("op")[0], []string{"dossiers à approuver : 1, systèmes des administrations indisponibles : 1, opérateurs indisponibles : 3", "case_first", "impots/live", "mtn/live", "card/live"}, amounts)

	o.Advance(digests.Every)
	o.proposed("case_second", o.mireille)
	o.Advance(digests.Every)
	o.arrive(map[string]int{"jean": 2, "mireille": 1, "op": 2})
	for _, to := range []string{"jean", "op"} {
		has(t, o.letters(to)[1], []string{"dossiers à approuver : 1\n", "case_second"}, append(amounts, "case_first", "impots/live", "mtn/live", "indisponibles"))
	}
	// After a day what is still there is said again. The calls without an answer are old by then.
	o.Advance(24 * time.Hour)
	o.arrive(map[string]int{"jean": 3, "mireille": 2, "op": 3})
	has(t, o.letters("op")[2], []string{"dossiers à approuver : 2, systèmes des administrations indisponibles : 1\n", "case_first", "case_second", "impots/live"}, append(amounts, "mtn/live"))
	has(t, o.letters("jean")[2], []string{"case_second", "impots/live"}, []string{"case_first"})
	stop()

	var ids []string
	for _, r := range o.Records(t, schemas.TopicMessages) {
		var m record.Message
		if err := o.Codec.Decode(r.Value, &m); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.MessageID)
		for _, hidden := range []string{"jean@", "mireille@", "op@", "case_first"} {
			if bytes.Contains(r.Value, []byte(hidden)) {
				t.Errorf("a record has %q in plain", hidden)
			}
		}
	}
	if slices.Sort(ids); len(ids) != 8 || len(slices.Compact(ids)) != 8 {
		t.Errorf("two instances wrote %d messages", len(ids))
	}
	for _, hidden := range []string{"jean@", "mireille@", "op@"} {
		if strings.Contains(o.log.String(), hidden) || o.count(`SELECT count(*) FROM deliveries d WHERE d::text LIKE '%' || $1 || '%'`, hidden) > 0 {
			t.Errorf("a log or a row has %q", hidden)
		}
	}
}

// Whoever runs the command line puts somebody into a group that has had people: the people of the group and of
// operations are told at once, in their language, also when they have had as many digests as a day allows.
func TestStaffAreToldOfASecondBootstrap(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.start()
	deliverytest.Start(t, o.digester(o.sender))
	if _, _, err := identity.RevokeStaff(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "Mireille", o.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.SetStaffContact(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "Op", identity.StaffContactRequest{Language: money.English}, o.Now()); err != nil {
		t.Fatal(err)
	}
	thief := o.staff("Thief", "impots", money.French)
	o.arrive(map[string]int{"jean": 1, "op": 1, "mireille": 0, "thief": 0})
	from := localtime.In(thief.MayBegin()).Format("02/01/2006 15:04")
	has(t, o.letters("jean")[0], []string{"Thief (impots) - " + thief.ID, "avant le " + from, "quittance staff revoke"}, []string{thief.Secret.Reveal(), "Hello"})
	has(t, o.letters("op")[0], []string{"Thief (impots) - " + thief.ID, "before " + from, "quittance staff revoke"}, []string{"Bonjour"})
}

// The passkeys of an invited person are confirmed: the person and the people who manage the group are told at once, and
// nobody else. A manager who is suspended is told, too: whoever runs the installation could otherwise suspend all managers,
// invite a person anew and confirm alone, and nobody would know.
func TestManagersAreToldOfPasskeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.start()
	deliverytest.Start(t, o.digester(o.sender))
	admin := []identity.Role{identity.RoleAgencyAdmin}
	if _, err := identity.SetStaffRoles(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "Jean", identity.RolesRequest{Add: admin}, o.Now()); err != nil {
		t.Fatal(err)
	}
	by := identity.By{Actor: registries.Actor}
	made, err := identity.InviteStaff(t.Context(), o.House.Pool, o.House.Keys, by, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Chloé", Agency: "impots", Roles: admin, Contact: identity.StaffContactRequest{Email: "chloe@example.org"}}}, o.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := identity.SuspendStaff(t.Context(), o.House.Pool, o.House.Keys, by, "Jean", "Clé perdue", o.Now()); err != nil {
		t.Fatal(err)
	}
	i, browser, err := identity.AcceptInvitation(t.Context(), o.House.Pool, o.House.Keys, made.Secret, "", o.Now())
	if err != nil {
		t.Fatal(err)
	}
	party, err := passkeys.New("https://staff.example")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		device, err := staff.NewDevice(uuid.MustParse(made.StaffID), "https://staff.example")
		if err != nil {
			t.Fatal(err)
		}
		options, err := identity.BeginInvitedPasskey(t.Context(), o.House.Pool, o.House.Keys, party, browser, o.Now())
		if err != nil {
			t.Fatal(err)
		}
		response, err := device.Register(options)
		if err != nil {
			t.Fatal(err)
		}
		if i, err = identity.AddInvitedPasskey(t.Context(), o.House.Pool, o.House.Keys, party, browser, "Clé", response, "", o.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := identity.ConfirmInvitation(t.Context(), o.House.Pool, o.House.Keys, by, i.ID, i.Digits(), o.Now()); err != nil {
		t.Fatal(err)
	}
	o.arrive(map[string]int{"jean": 1, "chloe": 1, "mireille": 0, "op": 0})
	from := localtime.In(o.Now().Add(identity.ApprovesAfter)).Format("02/01/2006")
	has(t, o.letters("jean")[0], []string{"Chloé (impots) - " + made.StaffID, "à partir du " + from, "quittance staff suspend"}, []string{made.Secret.Reveal(), i.Digits(), "Hello"})
}

// A passkey alone signs in, because the identity provider of a group is away: its people are told at once, until when.
func TestPeopleAreToldOfOutages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.start()
	deliverytest.Start(t, o.digester(o.sender))
	if _, err := identity.AddIssuer(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, identity.IssuerRequest{Address: "https://idp.example.org", ClientID: "quittance", Secret: secret.NewText("client-secret"), Agency: "impots"}, o.Now()); err != nil {
		t.Fatal(err)
	}
	set, err := identity.BeginOutage(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "impots", 4*time.Hour, "ticket 4711", o.Now())
	if err != nil {
		t.Fatal(err)
	}
	o.arrive(map[string]int{"jean": 1, "mireille": 1, "op": 0})
	until := localtime.In(set.OutageUntil).Format("02/01/2006 15:04")
	has(t, o.letters("jean")[0], []string{"idp.example.org (impots)", "Jusqu’au " + until, "quittance staff outage"}, []string{"client-secret", "Hello"})
	has(t, o.letters("mireille")[0], []string{"idp.example.org (impots)", "Until " + until}, []string{"client-secret", "Bonjour"})
}

// ending is a sender whose process ends when Kafka has the message.
type ending struct {
	notify.DigestSender
	died chan struct{}
}

func (d ending) Send(ctx context.Context, m messages.Message) error {
	if err := d.DigestSender.Send(ctx, m); err != nil {
		return err
	}
	select {
	case d.died <- struct{}{}:
	default:
	}
	return errors.New("the process ends")
}

// An instance ends when Kafka has the message and before Postgres has the record of it. The next
// one sends the same message, which the person gets once. An address that bounced gets nothing
// until it is given again.
func TestStaffDigestsAfterFaults(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.proposed("case_first", o.jean)
	sender := ending{o.sender, make(chan struct{}, 1)}
	stop := deliverytest.Start(t, o.digester(sender))
	<-sender.died
	stop()
	if n := o.count(`SELECT count(*) FROM digests WHERE sent_at IS NULL`); n != 2 {
		t.Fatalf("%d digests wait", n)
	}
	o.start()
	deliverytest.Start(t, o.digester(o.sender))
	o.arrive(map[string]int{"mireille": 1, "op": 1, "jean": 0})
	if n := len(o.Records(t, schemas.TopicMessages)); n < 3 {
		t.Errorf("%d messages: the test sees nothing", n)
	}

	o.sim.Control("mail", `{"status":550,"times":1}`)
	if _, _, err := identity.RemoveStaffContact(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "Op", o.Now()); err != nil {
		t.Fatal(err)
	}
	o.proposed("case_second", o.mireille) // Jean and operations may approve it
	o.Advance(digests.Every)
	deliverytest.Eventually(t, "the letter bounces", func() bool {
		return o.count(`SELECT count(*) FROM deliveries WHERE state = 'exhausted' AND reason LIKE 'refused%'`) == 1
	})
	o.proposed("case_third", o.mireille)
	o.Advance(digests.Every)
	deliverytest.Eventually(t, "the address is suppressed", func() bool {
		return o.count(`SELECT count(*) FROM deliveries WHERE state = 'exhausted' AND reason = 'suppressed'`) == 1
	})
	if _, err := identity.SetStaffContact(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, "Jean", identity.StaffContactRequest{Email: "jean@example.org"}, o.Now()); err != nil {
		t.Fatal(err)
	}
	o.proposed("case_fourth", o.mireille)
	o.Advance(digests.Every)
	deliverytest.Eventually(t, "the address gets digests again", func() bool { return len(o.letters("jean")) == 1 })
	has(t, o.letters("jean")[0], []string{"dossiers à approuver : 1\n", "case_fourth"}, []string{"case_third"})
	if got := o.letters("op"); len(got) != 1 {
		t.Errorf("after the removal of the address: %q", got)
	}
}

// A digest that Kafka has twice is sent once, also when its delivery is planned again while the
// sink runs. Before, the person got it twice.
func TestStaffDigestTwiceInKafka(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const to = "jean@example.org"
	for range 2 {
		w.await(w.tell(messages.StaffDigest, provider.ChannelEmail, to, "window"), deliveries.StateDelivered, "")
	}
	w.await(w.tell(messages.StaffDigest, provider.ChannelEmail, to, "next window"), deliveries.StateDelivered, "")
	if letters := w.sim.Inbox(provider.ChannelEmail); len(letters) != 2 {
		t.Errorf("%d letters", len(letters))
	}
	if n := len(w.Records(t, schemas.TopicMessagesDeliveries)); n != 3 {
		t.Errorf("%d deliveries are planned: the test sees nothing", n)
	}
}
