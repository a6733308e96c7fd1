package matcher

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/registry"
	"quittance/reconciliation/chain"
	"quittance/reconciliation/match"
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
		list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: term, TenantID: registries.AgencyA})
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
		if found, err := chain.Find(t.Context(), o.conn, chain.Query{Term: c.Operator[0].Row}); err != nil || len(found) != 1 || found[0].Money.Row != c.Money.Row {
			t.Errorf("%s: %+v, %v", c.Operator[0].Row, found, err)
		}
	}
	// The view has the same of all payments of the days.
	day := paid.In(wat).Format(time.DateOnly)
	rows, err := o.conn.Query(t.Context(), "SELECT payment_ref, gross, dues, confirmed, account, stage, toString(closed_until), bank_account, bank_key, toString(bank_closed_until), line, bank_line, length(case_ids) FROM chain(from = toDate(?), until = toDate(?)) WHERE tenant_id = ? ORDER BY payment_ref", day, day, registries.AgencyA)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		var ref, account, stage, closed, at, key, bankClosed, line, bankLine string
		var gross int64
		var dues []string
		var confirmed []bool
		var disputed uint64
		if err := rows.Scan(&ref, &gross, &dues, &confirmed, &account, &stage, &closed, &at, &key, &bankClosed, &line, &bankLine, &disputed); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(ref, " ", gross, " ", dues, confirmed, " ", account, " ", stage, " ", closed, " ", at, " ", key, " ", bankClosed, " ", strings.Contains(line, first.LineID), " ", strings.Contains(bankLine, entry.LineID), " ", disputed))
	}
	want := []string{"P1 5000 [DUE-1] [true] mtn operator_ref " + s.To + " banque MTN-1 1970-01-01 true true 0", "P2 3000 [] [false] mtn operator_ref " + s.To + " banque MTN-1 1970-01-01 false true 0"}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || !slices.Equal(got, want) {
		t.Errorf("the view: %q, %v; want %q", got, err, want)
	}
	if list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: "ODD"}); err != nil || len(list) != 1 || list[0].Money != nil || list[0].Line == nil || len(list[0].Breaks) != 1 || list[0].Breaks[0].CaseID == "" || len(list[0].Breaks[0].Lines) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: "MTN-1"}); err != nil || len(list) != 3 {
		t.Errorf("%d chains of a batch, %v", len(list), err)
	}
	if list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: "P1", TenantID: registries.AgencyB}); err != nil || len(list) != 0 {
		t.Errorf("another agency finds %+v, %v", list, err)
	}
	if list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: "' OR 1 = 1 --"}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A break is found by its case and its id, with the rows of both sides and what each counts; a line of
// the bank with the lines that it pays. So a difference at the bank leads to the payments in two steps.
func TestChainOfBreak(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid := o.now.AddDate(0, 0, -4)
	o.pay(money{"A1", "P1", "", 5000, paid, false}, money{"A2", "P2", "", 3000, paid, false}, money{"A3", "P3", "", 700, paid, false})
	of := func(account, ref, kind, batch string, amount, fee int64) *record.StatementLine {
		l := o.line(account, paid, amount, ref, "", "")
		l.Kind, l.Batch, l.Fee = kind, batch, fee
		return l
	}
	o.lines(of("mtn", "A1", "payment", "MTN-1", 5000, 50), of("mtn", "A2", "payment", "MTN-1", 3000, 30), of("mtn", "OUT", "payout", "MTN-1", -7920, 0), of("banque", "", "entry", "MTN-1", 7845, 0),
		of("mtn", "A3", "payment", "MTN-2", 700, 7), of("banque", "", "entry", "MTN-2", 693, 0))
	o.covered(paid, o.now, "accepted")
	o.look(m)
	s := o.runs(m, bank)
	if len(s.Breaks) != 1 || len(s.Matches) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	o.full(mtn)
	o.full(bank)
	find := func(term string, live *bool) []chain.Chain {
		t.Helper()
		list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: term, TenantID: registries.AgencyA, Live: live})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	caseID := o.caseOf(match.BreakAmount, -75).ID
	var finding string
	for _, term := range []string{caseID, s.Breaks[0].ID} {
		list := find(term, nil)
		if len(list) != 1 || list[0].Money != nil || len(list[0].Breaks) != 1 {
			t.Fatalf("%s: %+v", term, list)
		}
		b := list[0].Breaks[0]
		var expected int64
		for _, l := range b.ExpectedLines {
			expected += l.Net()
		}
		if b.CaseID != caseID || b.State != "open" || b.Currency != "XAF" || b.Amount != -75 || len(b.Lines) != 1 || len(b.ExpectedLines) != 3 || len(b.ExpectedMoney) != 0 || b.Lines[0].Amount-expected != b.Amount {
			t.Errorf("%s: %+v", term, b)
		}
		finding = b.Lines[0].Row
	}
	if list := find(finding, nil); len(list) != 1 || list[0].Line == nil || list[0].Line.Amount != 7845 || len(list[0].Breaks) != 1 || len(list[0].Breaks[0].ExpectedLines) != 3 || list[0].SettlesInAll != 0 {
		t.Errorf("the line of the bank: %+v", list)
	}
	// A batch leads to the payments of the operator's lines, and to the line of the bank.
	list := find("MTN-2", nil)
	if len(list) != 2 || list[0].Money == nil || list[1].Line == nil || list[1].Line.Account != "banque" || list[1].SettlesInAll != 1 || len(list[1].Settles) != 1 || list[1].Settles[0].Net() != 693 {
		t.Errorf("a batch that was paid: %+v", list)
	}
	if list := find(s.Matches[0].ID, nil); len(list) != 1 || list[0].Line == nil || list[0].Line.Amount != 693 {
		t.Errorf("a match: %+v", list)
	}
	if list := find(caseID, new(!bank.Live)); len(list) != 0 {
		t.Errorf("the other mode has %+v", list)
	}
	if list := find("P1", new(bank.Live)); len(list) != 1 || len(list[0].Breaks) != 1 || list[0].Breaks[0].ExpectedLines != nil {
		t.Errorf("a payment behind the break: %+v", list)
	}
	if list := find("P1", new(!bank.Live)); len(list) != 0 {
		t.Errorf("the other mode has %+v", list)
	}
}

// The operator's statement had a line too many, and the bank paid without it. Both were breaks, and the one
// of the bank did not say that the other explains it to the franc.
func TestBreakExplained(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid := o.now.AddDate(0, 0, -4)
	o.pay(money{"A1", "P1", "", 5000, paid, false}, money{"A2", "P2", "", 700, paid, false})
	of := func(account, ref, kind, batch string, amount int64) *record.StatementLine {
		l := o.line(account, paid, amount, ref, "", "")
		l.Kind, l.Batch = kind, batch
		return l
	}
	o.lines(of("mtn", "A1", "payment", "MTN-1", 5000), of("mtn", "X9", "payment", "MTN-1", 40), of("banque", "", "entry", "MTN-1", 5000),
		of("mtn", "A2", "payment", "MTN-2", 700), of("banque", "", "entry", "MTN-2", 690))
	o.covered(paid, o.now, "accepted")
	o.look(m)
	o.runs(m, bank)
	o.full(mtn)
	o.full(bank)
	extra := o.caseOf(match.BreakUnmatchedLine, 40).ID
	for amount, want := range map[int64]string{-40: extra, -10: ""} {
		list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: o.caseOf(match.BreakAmount, amount).ID, TenantID: registries.AgencyA})
		if err != nil || len(list) != 1 || len(list[0].Breaks) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		var got string
		for _, e := range list[0].Breaks[0].ExplainedBy {
			got += e.CaseID
		}
		if got != want {
			t.Errorf("%d is explained by %q, want %q", amount, got, want)
		}
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
