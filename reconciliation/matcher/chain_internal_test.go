package matcher

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/registry"
	"quittance/reconciliation/chain"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/registries"
)

// The chain of a payment is found by every name that people know it by, from its due to the line
// of the bank, with the records that prove it. A line without a payment is found with its break.
func TestChain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid := o.now.AddDate(0, 0, -2)
	e := o.event(money{"A1", "P1", "AV1", 5000, paid, false})
	e.Session.OrderID, e.Session.TransactionID, e.Session.Metadata = "ORDER-1", "tx-1", map[string]string{"erp_due_ref": "DUE-1"}
	accepted := *e
	accepted.EventID, accepted.Type, accepted.Sequence, accepted.Detail = "evt_accepted", "confirmation.accepted", 4, map[string]string{"transaction_id": "tx-1"}
	o.produce(schemas.TopicEvents, registries.AgencyA, e, &accepted)
	o.pay(money{"A2", "P2", "", 3000, paid, false})
	in := func(l *record.StatementLine, batch string, fee int64) *record.StatementLine {
		l.Batch, l.Fee = batch, fee
		return l
	}
	first, second, odd := in(o.line("mtn", paid, 5000, "A1", "", ""), "MTN-1", 50), in(o.line("mtn", paid, 3000, "A2", "", ""), "MTN-1", 30), o.line("mtn", paid, 77, "ODD", "", "")
	entry := in(o.line("banque", paid, 7920, "", "", ""), "MTN-1", 0)
	entry.Kind = "entry"
	o.lines(first, second, odd, entry)
	o.covered(paid, o.now, "accepted")
	o.look(m)
	if s := o.runs(m, bank); len(s.Matches) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	s, err := o.sheet(m, paid)
	if err != nil {
		t.Fatal(err)
	}
	o.approve(s)
	o.look(m)
	o.full(mtn)
	o.full(bank)
	for _, term := range []string{"DUE-1", "ORDER-1", "tx-1", "P1", "AV1", "A1", e.SessionID, e.Session.Collection.ID, first.LineID, "mtn/" + first.LineID} {
		list, err := chain.Find(t.Context(), o.conn, term, registries.AgencyA)
		if err != nil || len(list) != 1 || list[0].Money == nil {
			t.Errorf("%s: %+v, %v", term, list, err)
			continue
		}
		c := list[0]
		switch {
		case c.Money.Gross != 5000 || c.Money.PaymentRef != "P1" || c.Money.Withdrawn || c.Money.Evidence.Topic != schemas.TopicEvents:
			t.Errorf("%s: %+v", term, c.Money)
		case len(c.Items) != 1 || c.Items[0].Transaction != "tx-1" || c.Items[0].Due != "DUE-1" || c.Items[0].ConfirmedBy != "evt_accepted" || !c.Items[0].ConfirmedAt.Equal(paid):
			t.Errorf("%s: %+v", term, c.Items)
		case len(c.Operator) != 1 || c.Operator[0].OperatorRef != "A1" || c.Operator[0].Stage != "operator_ref" || c.Operator[0].Match == "" || c.Operator[0].Closed != s.To || c.Operator[0].MatchEvidence.Topic != schemas.TopicReconciliation:
			t.Errorf("%s: %+v", term, c.Operator)
		case len(c.Bank) != 1 || c.Bank[0].Amount != 7920 || c.Bank[0].Account != "banque" || c.Bank[0].Closed != "" || c.Bank[0].Evidence.Topic != schemas.TopicStatements || len(c.Breaks) != 0:
			t.Errorf("%s: %+v %+v", term, c.Bank, c.Breaks)
		}
		if found, err := chain.Find(t.Context(), o.conn, c.Operator[0].Row, ""); err != nil || len(found) != 1 || found[0].Money.Row != c.Money.Row {
			t.Errorf("%s: %+v, %v", c.Operator[0].Row, found, err)
		}
	}
	if list, err := chain.Find(t.Context(), o.conn, "ODD", ""); err != nil || len(list) != 1 || list[0].Money != nil || len(list[0].Operator) != 1 || len(list[0].Breaks) != 1 || list[0].Breaks[0].CaseID == "" || len(list[0].Breaks[0].Lines) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := chain.Find(t.Context(), o.conn, "MTN-1", ""); err != nil || len(list) != 3 {
		t.Errorf("%d chains of a batch, %v", len(list), err)
	}
	if list, err := chain.Find(t.Context(), o.conn, "P1", registries.AgencyB); err != nil || len(list) != 0 {
		t.Errorf("another agency finds %+v, %v", list, err)
	}
	if list, err := chain.Find(t.Context(), o.conn, "' OR 1 = 1 --", ""); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// The close of an operator's account proves the rows of its payments with the operator's lines, the
// close of the bank's account with the bank's too, from Kafka alone.
func TestCloseProved(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid := o.now.AddDate(0, 0, -2)
	e := o.event(money{"A1", "P1", "", 5000, paid, false})
	e.Session.TransactionID, e.Session.Metadata = "tx-1", map[string]string{"erp_due_ref": "DUE-1"}
	accepted := *e
	accepted.EventID, accepted.Type, accepted.Sequence, accepted.Detail = "evt_accepted", "confirmation.accepted", 4, map[string]string{"transaction_id": "tx-1"}
	again := accepted
	again.EventID, again.Type, again.Sequence = "evt_recorded", "confirmation.recorded", 5
	o.produce(schemas.TopicEvents, registries.AgencyA, e, &accepted, &again)
	unmatched := o.event(money{"A2", "P2", "", 3000, paid, false})
	o.produce(schemas.TopicEvents, registries.AgencyA, unmatched)
	first := o.line("mtn", paid, 5000, "A1", "", "")
	first.Batch, first.Fee = "MTN-1", 50
	entry := o.line("banque", paid, 4950, "", "", "")
	entry.Kind, entry.Batch = "entry", "MTN-1"
	o.lines(first, entry, o.line("mtn", paid, 77, "ODD", "", ""))
	for _, account := range []string{"mtn", "banque"} {
		o.coveredOf(account, paid, o.now, "accepted")
	}
	o.runs(m, mtn)
	o.full(mtn)
	tooLate := *unmatched // above the watermark of the run
	tooLate.EventID, tooLate.Type, tooLate.Sequence, tooLate.Detail = "evt_late", "confirmation.accepted", 4, map[string]string{"transaction_id": unmatched.Session.TransactionID}
	o.produce(schemas.TopicEvents, registries.AgencyA, &tooLate)
	for _, key := range []registry.StatementAccountKey{mtn, bank} {
		o.runs(m, key)
		o.full(key) // waits for the journal
		s, err := m.Sheet(t.Context(), key, paid.In(wat).Format(time.DateOnly))
		if err != nil {
			t.Fatal(err)
		}
		o.approve(s)
		o.look(m)
	}
	for key, want := range map[registry.StatementAccountKey]int64{mtn: 2, bank: 1} {
		list := o.proved(key)
		if len(list) != 1 || list[0].Rows != want || list[0].ChainRows != want {
			t.Fatalf("%s: %+v", key.Code, list)
		}
		book := o.book()
		ids := book.Entries("tx-1")
		if len(ids) != 1 || !slices.Equal(book.Entries("DUE-1"), ids) || !slices.Equal(book.Entries("P1"), ids) || len(book.Entries("nothing")) != 0 {
			t.Fatalf("entries %q", ids)
		}
		proofs, err := list[0].Proofs(ids[0])
		if err != nil || len(proofs) != 1 {
			t.Fatalf("%+v, %v", proofs, err)
		}
		if late, err := list[0].Proofs(book.Entries("A2")[0]); err != nil || key == mtn && (len(late) != 1 || late[0].Row.Confirmation != "" || late[0].Row.OperatorLine != "") {
			t.Errorf("%+v, %v", late, err)
		}
		row := proofs[0].Row
		if row.Item != 1 || row.Due != "DUE-1" || row.Transaction != "tx-1" || row.Confirmation != "evt_accepted" || row.Amount != 5000 || row.OperatorRef != "A1" || row.Session != e.SessionID ||
			!strings.HasPrefix(row.OperatorLine, paid.In(wat).Format(time.DateOnly)+"/"+first.LineID+"#") || strings.Contains(row.BankLine, "/banque/") != (key == bank) {
			t.Errorf("%s: %+v", key.Code, row)
		}
	}
}
