package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/internal/deliveries"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/notify/payment"
	"quittance/internal/provider"
	"quittance/internal/signed"
	"quittance/money"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/sinks/notify"
	"quittance/sinks/readmodel"
	"quittance/test/await"
	deliverytest "quittance/test/deliveries"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/providers"
	"quittance/test/registries"
)

// signatory adds a person of the agency whom Jean proposes and Mireille approves.
func (o *office) signatory(name string, language money.Language) identity.MintedStaff {
	o.t.Helper()
	m, err := identity.AddStaff(o.t.Context(), o.House.Pool, o.House.Keys, registries.Actor, o.jean.Secret.Reveal(), identity.StaffRequest{
		Name: name, Agency: "impots", Contact: identity.StaffContactRequest{Email: strings.ToLower(name) + "@example.org", Language: language},
	}, o.Now())
	if err == nil {
		_, err = identity.ApproveStaff(o.t.Context(), o.House.Pool, o.House.Keys, registries.Actor, o.mireille.Secret.Reveal(), m.ID, o.Now())
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return m
}

// Approvers, whoever prepared a batch and the people whom the policy names get one e-mail each of what concerns them, in
// their language, also when all events are read once more. Nothing of a payee is in it, test batches say that they are
// tests, and whoever is revoked gets none.
func TestNoticesOfBatches(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t), payouts.Install(t)
	rose, paul, wanda := o.signatory("Rose", money.French), o.signatory("Paul", money.French), o.signatory("Wanda", money.English)
	gone := o.signatory("Gone", money.French)
	jean, mireille := o.jean, o.mireille // jean prepares, mireille and gone are of the first level, rose and paul of the second

	i.Process()
	store := disbursements.NewStore(o.House.Pool, i.Codec)
	model, err := readmodel.NewBatches(readmodel.BatchesConfig{Kafka: i.Kafka, Store: store, Log: slog.New(slog.NewTextHandler(o.log, nil)), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	notices, err := notify.NewBatches(notify.BatchesConfig{
		Kafka: i.Kafka, Codec: i.Codec, Store: store, Keys: o.keys, Sender: o.sender, Now: i.Now, Log: slog.New(slog.NewTextHandler(o.log, nil)), Metrics: prometheus.NewRegistry(),
		Staff: func(ctx context.Context) ([]identity.StaffEntry, error) {
			return identity.ListStaff(ctx, o.House.Pool, signed.NewVerifier(o.House.Keys))
		},
		Agency: func(string) (payment.Agency, bool) { return payment.Agency{Name: "Direction des impôts"}, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	deliverytest.Start(t, model)

	// The agency: the first two people, then the others and a policy, as both sign.
	i.OK(processor.SenderOperator, "", disbursement.Enrol{
		People: []disbursement.Enrolled{payroll.Enrolled(jean.ID, "maker"), payroll.Enrolled(mireille.ID, "chief")}, RPID: payroll.RPID, Origin: payroll.Origin,
	})
	i.Advance(25 * time.Hour)
	demand := payroll.Policy()
	demand.Tiers[0].Rules = []policy.Rule{{Role: "chief", Needed: 1}, {Role: "director", Needed: 1}}
	demand.Watchers = []string{wanda.ID, jean.ID}
	number := int64(1)
	setPolicy := func() {
		number++
		set := disbursement.SetPolicy{Policy: demand}
		set.Confirmed = payroll.Confirm(number, set.Content(false), jean.ID, mireille.ID)
		i.OK(processor.SenderOffice, "", set)
	}
	enrol := func(people ...disbursement.Enrolled) {
		number++
		more := disbursement.Enrol{People: people}
		more.Confirmed = payroll.Confirm(number, more.Content(), jean.ID, mireille.ID)
		i.OK(processor.SenderOffice, "", more)
	}
	enrol(payroll.Enrolled(rose.ID, "director"), payroll.Enrolled(paul.ID, "director"), payroll.Enrolled(gone.ID, "chief"))
	setPolicy()
	i.Advance(80 * time.Hour) // what happened until here is told nobody any more
	o.Advance(105 * time.Hour)
	if _, _, err := identity.RevokeStaff(t.Context(), o.House.Pool, o.House.Keys, registries.Actor, gone.ID, o.Now()); err != nil {
		t.Fatal(err)
	}
	deliverytest.Eventually(t, "the read model knows the policy", func() bool {
		a, _, err := store.Agency(t.Context(), payroll.Tenant, false)
		return err == nil && len(a.InForce(i.Now()).Watchers) == 2
	})
	o.start()
	stop := deliverytest.Start(t, notices)

	enrol(payroll.Enrolled(wanda.ID, "reader"))
	demand.Watchers = []string{wanda.ID} // jean is told that he is told no more
	setPolicy()

	sealed := func(id string) disbursement.Batch {
		open := payroll.Opening("SALARIES-"+id, i.Now().Format(time.DateOnly))
		open.Maker = jean.ID
		i.OK(processor.SenderOperator, id, open)
		b := i.OK(processor.SenderOperator, id, disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{payroll.Line(id+"-1", "mtn", "", 700_000), payroll.Line(id+"-2", "mtn", "", 300_007)}})
		return i.OK(processor.SenderOperator, id, disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()})
	}
	one, two, three := sealed("dsb_1"), sealed("dsb_2"), sealed("dsb_3")
	i.OK(processor.SenderOffice, one.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(one.Digest, mireille.ID, 1, digest.Approve)})
	i.OK(processor.SenderOffice, one.ID, disbursement.Approve{Level: 2, Signed: payroll.Step(one.Digest, rose.ID, 2, digest.Approve)})
	i.OK(processor.SenderOffice, one.ID, disbursement.Release{Signed: payroll.Step(one.Digest, paul.ID, 0, digest.Release)})
	sent := func(batch string) {
		t.Helper()
		deliverytest.Eventually(t, "the lines are sent", func() bool {
			b, err := store.Batch(t.Context(), disbursements.Scope{}, batch)
			return err == nil && b.Lines.Sent.Count == 2
		})
	}
	word := func(batch string, w disbursement.Word) {
		t.Helper()
		w.Attempt, w.Try, w.Source = 1, 1, disbursement.FromEnquiry
		i.OK(processor.SenderDisburse, batch, w)
	}
	sent(one.ID)
	word(one.ID, disbursement.Word{Position: 0, Kind: disbursement.WordPaid, Amount: 700_000, Currency: "XAF"})
	word(one.ID, disbursement.Word{Position: 1, Kind: disbursement.WordRefused, Code: "NOT_FOUND"})
	i.OK(processor.SenderOffice, two.ID, disbursement.Reject{Reason: "ask JANE DOE", Signed: payroll.Step(two.Digest, mireille.ID, 0, digest.Reject)})
	deliverytest.Eventually(t, "paul is told of the first batch", func() bool {
		return slices.ContainsFunc(o.sim.Inbox(provider.ChannelEmail), func(l providers.Received) bool { return l.To == "paul@example.org" })
	})
	i.OK(processor.SenderOffice, "", disbursement.Revoke{Person: paul.ID}) // holds the third batch: paul is told no more

	link := func(b disbursement.Batch) string { return "https://staff.example/agency/batches/" + b.ID }
	want := []string{
		"jean@example.org: TEST – Direction des impôts – changement des signataires des lots", "wanda@example.org: TEST – Direction des impôts – change of those who sign batches",
		"jean@example.org: TEST – Direction des impôts – nouvelles règles d’approbation des lots", "wanda@example.org: TEST – Direction des impôts – new rules for approving batches",
		"jean@example.org: TEST – Direction des impôts – signataire ou clé retirés", "wanda@example.org: TEST – Direction des impôts – signatory or passkey revoked",
		"rose@example.org: TEST – Direction des impôts – lot à approuver : SALARIES-dsb_1", "paul@example.org: TEST – Direction des impôts – lot à approuver : SALARIES-dsb_1",
		"jean@example.org: TEST – Direction des impôts – lot approuvé : SALARIES-dsb_1", "wanda@example.org: TEST – Direction des impôts – batch approved: SALARIES-dsb_1",
		"jean@example.org: TEST – Direction des impôts – lot terminé : SALARIES-dsb_1", "wanda@example.org: TEST – Direction des impôts – batch done: SALARIES-dsb_1",
		"jean@example.org: TEST – Direction des impôts – lot rejeté : SALARIES-dsb_2", "wanda@example.org: TEST – Direction des impôts – batch rejected: SALARIES-dsb_2",
		"jean@example.org: TEST – Direction des impôts – lot suspendu : SALARIES-dsb_3", "wanda@example.org: TEST – Direction des impôts – batch held: SALARIES-dsb_3",
		"mireille@example.org: TEST – Direction des impôts – batch held: SALARIES-dsb_3", "rose@example.org: TEST – Direction des impôts – lot suspendu : SALARIES-dsb_3",
	}
	for _, b := range []disbursement.Batch{one, two, three} {
		want = append(want, "mireille@example.org: TEST – Direction des impôts – batch to approve: "+b.BatchRef)
	}
	slices.Sort(want)
	inbox := func() (out []string) {
		for _, l := range o.sim.Inbox(provider.ChannelEmail) {
			out = append(out, plain(l.To+": "+l.Subject))
		}
		slices.Sort(out)
		return out
	}
	for n := range want {
		want[n] = plain(want[n])
	}
	arrive := func() {
		t.Helper()
		if !await.Within(deliverytest.Patience, func() bool { return slices.Equal(inbox(), want) }) {
			t.Fatalf("the letters are\n%s\nwant\n%s", strings.Join(inbox(), "\n"), strings.Join(want, "\n"))
		}
	}
	arrive()
	for _, l := range o.sim.Inbox(provider.ChannelEmail) {
		text := plain(l.Text)
		for _, private := range []string{"PAYEE", payroll.Payee, "700 000", "300 007", "dsb_1-1", "JANE"} {
			sums := strings.Contains(text, "Lignes payées") || strings.Contains(text, "Lines paid") // here each is of one line
			if strings.Contains(text, private) && !(sums && strings.Contains(private, "00")) {
				t.Errorf("a letter to %s has %q: %s", l.To, private, text)
			}
		}
		switch {
		case strings.Contains(plain(l.Subject), "lot terminé"):
			has(t, text, []string{"Montant total : 1 000 007 FCFA", "Lignes payées : 1 (", "Lignes refusées : 1 (", "Lignes annulées : 0 (0 FCFA)", "Le lot : " + link(one)}, nil)
		case strings.Contains(plain(l.Subject), "lot à approuver"):
			has(t, text, []string{"Référence : SALARIES-dsb_1", "Nombre de lignes : 2", "Montant total : 1 000 007 FCFA", link(one)}, nil)
		case strings.Contains(l.Subject, "batch held"):
			has(t, text, []string{"Reason: a person or a passkey of its approvers was revoked", "until two people resume it", link(three)}, nil)
		case strings.Contains(l.Subject, "those who sign"):
			has(t, text, []string{"count from ", "https://staff.example/agency/batches", "one person can hold a batch"}, nil)
		}
	}

	// The group loses its offsets: all is read again, and nobody gets a second letter. A last event is behind it.
	stop()
	adm := kadm.NewClient(o.Client)
	deliverytest.Eventually(t, "the offsets are lost", func() bool {
		_, err := adm.DeleteGroup(t.Context(), i.Kafka.Prefix+notify.BatchesGroup)
		return err == nil
	})
	i.OK(processor.SenderOffice, three.ID, disbursement.Recall{By: jean.ID}) // told nobody
	four := sealed("dsb_4")
	i.OK(processor.SenderOffice, four.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(four.Digest, mireille.ID, 1, digest.Approve)})
	i.OK(processor.SenderOffice, four.ID, disbursement.Approve{Level: 2, Signed: payroll.Step(four.Digest, rose.ID, 2, digest.Approve)})
	i.OK(processor.SenderOffice, four.ID, disbursement.Release{Signed: payroll.Step(four.Digest, mireille.ID, 0, digest.Release)})
	sent(four.ID)
	word(four.ID, disbursement.Word{Position: 0, Kind: disbursement.WordNoFunds, Code: "EMPTY"})
	for _, letter := range []string{
		"mireille@example.org: TEST – Direction des impôts – batch to approve: SALARIES-dsb_4", "rose@example.org: TEST – Direction des impôts – lot à approuver : SALARIES-dsb_4",
		"jean@example.org: TEST – Direction des impôts – lot approuvé : SALARIES-dsb_4", "wanda@example.org: TEST – Direction des impôts – batch approved: SALARIES-dsb_4",
		"jean@example.org: TEST – Direction des impôts – compte sans provision : mtn", "wanda@example.org: TEST – Direction des impôts – account without funds: mtn",
	} {
		want = append(want, plain(letter))
	}
	slices.Sort(want)
	again, err := notify.NewBatches(notify.BatchesConfig{
		Kafka: i.Kafka, Codec: i.Codec, Store: store, Keys: o.keys, Sender: o.sender, Now: i.Now, Log: slog.New(slog.NewTextHandler(o.log, nil)), Metrics: prometheus.NewRegistry(),
		Staff: func(ctx context.Context) ([]identity.StaffEntry, error) {
			return identity.ListStaff(ctx, o.House.Pool, signed.NewVerifier(o.House.Keys))
		},
		Agency: func(string) (payment.Agency, bool) { return payment.Agency{Name: "Direction des impôts"}, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	deliverytest.Start(t, again)
	arrive()
	deliverytest.Eventually(t, "all messages that were made again are settled", func() bool {
		return o.count(`SELECT count(*) FROM deliveries WHERE state NOT IN ($1)`, deliveries.StateDelivered) == 0
	})
	arrive()
}

// A preparer seals and recalls a batch all day. Approvers have three letters, and one more when a batch really waits for an hour;
// each had a letter before.
func TestSealingAgainAndAgain(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t), payouts.Install(t)
	jean, mireille := o.jean, o.mireille
	i.Process()
	store := disbursements.NewStore(o.House.Pool, i.Codec)
	model, err := readmodel.NewBatches(readmodel.BatchesConfig{Kafka: i.Kafka, Store: store, Log: slog.New(slog.NewTextHandler(o.log, nil)), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	deliverytest.Start(t, model)
	i.OK(processor.SenderOperator, "", disbursement.Enrol{
		People: []disbursement.Enrolled{payroll.Enrolled(jean.ID, "maker"), payroll.Enrolled(mireille.ID, "chief")}, RPID: payroll.RPID, Origin: payroll.Origin,
	})
	i.Advance(25 * time.Hour)
	set := disbursement.SetPolicy{Policy: payroll.Policy()}
	set.Confirmed = payroll.Confirm(2, set.Content(false), jean.ID, mireille.ID)
	i.OK(processor.SenderOffice, "", set)
	i.Advance(80 * time.Hour)
	o.Advance(105 * time.Hour)
	o.start()
	begin := func() (stop func()) {
		b, err := notify.NewBatches(notify.BatchesConfig{
			Kafka: i.Kafka, Codec: i.Codec, Store: store, Keys: o.keys, Sender: o.sender, Now: i.Now, Log: slog.New(slog.NewTextHandler(o.log, nil)), Metrics: prometheus.NewRegistry(),
			Staff: func(ctx context.Context) ([]identity.StaffEntry, error) {
				return identity.ListStaff(ctx, o.House.Pool, signed.NewVerifier(o.House.Keys))
			},
			Agency: func(string) (payment.Agency, bool) { return payment.Agency{Name: "Direction des impôts"}, true },
		})
		if err != nil {
			t.Fatal(err)
		}
		return deliverytest.Start(t, b)
	}
	const revisions = 6
	for n := range revisions {
		id := fmt.Sprintf("dsb_%d", n)
		open := payroll.Opening("SALARIES", i.Now().Format(time.DateOnly))
		open.Maker = jean.ID
		i.OK(processor.SenderOperator, id, open)
		b := i.OK(processor.SenderOperator, id, disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{payroll.Line("line", "mtn", "", 1000)}})
		i.OK(processor.SenderOperator, id, disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()})
		if n < revisions-1 {
			i.OK(processor.SenderOffice, id, disbursement.Recall{By: jean.ID})
		}
	}
	deliverytest.Eventually(t, "the read model has the last revision", func() bool {
		b, err := store.Batch(t.Context(), disbursements.Scope{}, "dsb_5")
		return err == nil && b.Status == disbursement.StatusSealed
	})
	letters := func() (out []string) {
		for _, l := range o.sim.Inbox(provider.ChannelEmail) {
			for n := range revisions {
				if id := fmt.Sprintf("dsb_%d", n); l.To == "mireille@example.org" && strings.Contains(l.Text, id) {
					out = append(out, id)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	arrive := func(want ...string) {
		t.Helper()
		if !await.Within(deliverytest.Patience, func() bool { return slices.Equal(letters(), want) }) {
			t.Fatalf("letters about %v, want %v", letters(), want)
		}
	}
	stop := begin()
	arrive("dsb_0", "dsb_1", "dsb_2")
	deliverytest.Eventually(t, "all sealings are heard of", func() bool {
		topic := i.Topology.Name(schemas.Disbursement.Events)
		open, err := kafka.Unsettled(t.Context(), kadm.NewClient(i.Producer), topic, i.Kafka.Prefix+notify.BatchesGroup)
		heard := err == nil
		if heard {
			err = i.Kafka.Read(t.Context(), topic, open, nil, func(*kgo.Record) (bool, error) { heard = false; return false, nil })
		}
		return heard && err == nil
	})
	arrive("dsb_0", "dsb_1", "dsb_2")
	stop()
	i.Advance(61 * time.Minute)
	begin()
	arrive("dsb_0", "dsb_1", "dsb_2", "dsb_5")
}
