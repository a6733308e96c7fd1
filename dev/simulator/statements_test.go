package simulator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/statements"
	"quittance/reconciliation/match"
	"quittance/statement"
)

var wat = time.FixedZone("WAT", 3600)

// accounts are those of the simulators as a reader knows them.
var accounts = map[string]statements.Account{
	"mtn":      {Code: "mtn", Number: "46733123454", Currency: "XAF", Profile: "mtn"},
	"airtel":   {Code: "airtel", Number: "MER-042", Currency: "XAF", Profile: "airtel"},
	"cartes":   {Code: "cartes", Currency: "XAF", Profile: "card-settlement"},
	"guichets": {Code: "guichets", Currency: "XAF", Profile: "cash-slip"},
	"banque":   {Code: "banque", IBAN: "CG39 3001 1000 1010 1345 1300 019", Currency: "XAF", Profile: "camt.053", Batch: regexp.MustCompile(`\b(?:MTN|AM|CARD|SLIP)-\d{8}\b`)},
}

var paying = []string{"mtn", "airtel", "cartes", "guichets"}

var accountRules = match.Rules{Zone: wat, Cutoff: 17 * time.Hour, Grace: 2}

// purse pays with every operator and keeps what the service would expect.
type purse struct {
	*world
	refs     *checkout.References
	n        int64
	total    int64 // that the desk's next look-up finds
	expected map[string][]match.Expected
	rules    match.Rules // of the paying accounts
}

// newPurse takes the accounts of the simulators' configuration, or their own ones for nil.
func newPurse(t *testing.T, of []simulator.StatementAccount) *purse {
	t.Helper()
	p := &purse{expected: map[string][]match.Expected{}, rules: accountRules}
	var err error
	if p.refs, err = checkout.NewReferences(make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	desk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"collection_id": uuid.NewString(), "total": p.total, "currency": "XAF", "reserved_until": p.clock.Now().Add(10 * time.Minute)})
	}))
	t.Cleanup(desk.Close)
	p.world = newWorld(t, func(c *simulator.Config) {
		c.Counter, c.Clerks = desk.URL, [][]string{{"ck_test_1", "ck_test_2"}}
		if of != nil {
			c.Statements = func() []simulator.StatementAccount { return of }
			p.rules.Cutoff = of[0].Cutoff
		}
	})
	return p
}

// pay pays an amount to an account.
func (p *purse) pay(account string, amount int64) {
	p.t.Helper()
	ref, ok := "", false
	for ; !ok; p.n++ {
		ref, ok = p.refs.PaymentRef(p.n)
	}
	id := uuid.NewString()
	var a answer
	switch account {
	case "mtn":
		body := fmt.Sprintf(`{"amount":"%d","currency":"XAF","externalId":%q,"payer":{"partyIdType":"MSISDN","partyId":"242066000001"},"payerMessage":"p","payeeNote":"n"}`, amount, ref)
		a = p.call(http.MethodPost, "/mtn/collection/v1_0/requesttopay", body, p.login("user").header(id))
	case "airtel":
		id = strings.ReplaceAll(id, "-", "")
		body := fmt.Sprintf(`{"reference":%q,"subscriber":{"country":"CG","currency":"XAF","msisdn":"055000001"},"transaction":{"amount":%d,"country":"CG","currency":"XAF","id":%q}}`, ref, amount, id)
		a = p.call(http.MethodPost, airtelPayments, body, p.application("one").header(id))
	case "cartes":
		m := p.shop()
		of := m.transaction(id)
		of["amount"], of["currency"] = amount, "XAF"
		a = m.post(of)
		var o opened
		a.decode(p.t, &o)
		m.choose(o, "approve", "")
	case "guichets":
		p.total = amount
		if a = p.control("/counter/"+ref, `{"number": "01"}`); a.status == http.StatusCreated {
			var of struct{ ID string }
			a.decode(p.t, &of)
			id = of.ID
		}
	}
	if a.status/100 != 2 {
		p.t.Fatalf("paying %s: %d %s", account, a.status, a.body)
	}
	var c struct {
		Status      string `json:"status"`
		OperatorRef string `json:"operator_ref"`
	}
	p.eventually("paid", func() bool {
		p.call(http.MethodGet, "/control/collections/"+id, "", nil).decode(p.t, &c)
		return c.Status == "approved"
	})
	p.expected[account] = append(p.expected[account], match.Expected{
		ID: fmt.Sprintf("%s %02d", account, len(p.expected[account])+1), At: p.clock.Now(), Amount: amount, Currency: "XAF", OperatorRef: c.OperatorRef, PaymentRef: ref,
	})
}

// days are those of the payments, and the day after.
var days = []string{"2026-09-30", "2026-10-01", "2026-10-02"}

// at moves the clock to a local time of a day.
func (p *purse) at(day int, clock string) {
	p.t.Helper()
	to, err := time.ParseInLocation("2006-01-02 15:04", days[day]+" "+clock, wat)
	if err != nil || to.Before(p.clock.Now()) {
		p.t.Fatal(to, err)
	}
	p.clock.advance(to.Sub(p.clock.Now()))
}

// twoDays pays before and after the cut-off and around midnight, each amount once. The first
// amount of an account is 10,000 and 100 for each account before it.
func twoDays(t *testing.T, of ...simulator.StatementAccount) *purse {
	t.Helper()
	p := newPurse(t, of)
	for i, when := range []struct {
		day   int
		clock string
	}{{0, "09:30"}, {0, "10:00"}, {0, "16:59"}, {0, "17:00"}, {0, "23:30"}, {1, "00:30"}, {1, "12:00"}} {
		p.at(when.day, when.clock)
		for j, account := range paying {
			p.pay(account, int64(10_000+1000*i+100*j))
		}
	}
	p.at(2, "20:00")
	return p
}

// file returns the statement of a day.
func (p *purse) file(account, day string) string {
	p.t.Helper()
	a := p.call(http.MethodGet, "/control/statements/"+account+"?day="+day, "", nil)
	if a.status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", account, a.status, a.body)
	}
	return a.body
}

// read reads the statements of all days. It returns the lines as the matcher takes them, and
// the faults of the files; lines of a refused file do not count.
func (p *purse) read(account string) (lines []match.Line, faults []statements.FaultKind) {
	p.t.Helper()
	var mark statements.Mark
	for _, day := range days {
		var of []match.Line
		file, err := statements.Read(strings.NewReader(p.file(account, day)), accounts[account], func(l *statements.Line) error {
			booked, err := statement.ParseDay(l.Day)
			of = append(of, match.Line{Line: statement.Line{
				ID: l.ID, Account: l.Account, At: l.At, Day: booked, Kind: statement.Kind(l.Kind), Amount: l.Amount, Fee: l.Fee, Currency: l.Currency,
				OperatorRef: l.OperatorRef, PaymentRef: l.PaymentRef, NoticeRef: l.NoticeRef, Batch: l.Batch, Reversal: l.Reversal,
			}})
			return err
		})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, f := range file.Faults {
			faults = append(faults, f.Kind)
		}
		if file.Refused() {
			continue
		}
		lines = append(lines, of...)
		for i := range file.Statements {
			if s := &file.Statements[i]; s.Lines > 0 {
				var more []statements.Fault
				if _, mark, more = statements.Follow(mark, s, p.seen(account, day, mark, s)); more != nil {
					faults = append(faults, more[0].Kind)
				}
			}
		}
	}
	return lines, faults
}

// seen says what a file has of the account's last statement, as an import finds it.
func (p *purse) seen(account, day string, mark statements.Mark, s *statements.Statement) (seen statements.Seen) {
	p.t.Helper()
	o := statements.NewOverlap(mark, s.Opening)
	if _, err := statements.Read(strings.NewReader(p.file(account, day)), accounts[account], o.Take); err != nil {
		p.t.Fatal(err)
	}
	o.Put(&seen)
	return seen
}

// receipts matches the money of an account.
func (p *purse) receipts(account string, lines []match.Line) match.Result {
	p.t.Helper()
	result, err := match.Receipts{Account: account, Rules: p.rules, Today: statement.DayOf(p.clock.Now(), wat) + 10, Expected: p.expected[account], Lines: lines}.Run()
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// settlements matches the payouts and the slips with the bank's entries.
func (p *purse) settlements() match.Result {
	p.t.Helper()
	in := match.Settlements{Account: "banque", Rules: match.Rules{Zone: wat, Grace: 2}, Today: statement.DayOf(p.clock.Now(), wat) + 10, Cutoffs: map[string]match.Rules{}}
	for _, account := range paying {
		lines, _ := p.read(account)
		in.Lines = append(in.Lines, lines...)
		in.Cutoffs[account] = p.rules
	}
	in.Bank, _ = p.read("banque")
	result, err := in.Run()
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// found says in words what a run found beside matches.
func found(r match.Result) []string {
	out := []string{}
	for _, b := range r.Breaks {
		out = append(out, fmt.Sprintf("%s %+d of %d lines and %s", b.Kind, b.Difference, len(b.Lines), strings.Join(slices.Concat(b.Sources, b.NotTaken), ", ")))
	}
	slices.Sort(out)
	return out
}

// Without faults the service finds every franc: the readers take every file, each statement
// continues the one before, each payment has its line, and each batch its entry at the bank.
func TestStatementsProveThePayments(t *testing.T) {
	t.Parallel()
	p := twoDays(t)
	for _, account := range paying {
		lines, faults := p.read(account)
		if faults != nil {
			t.Errorf("%s: %v in\n%s", account, faults, p.file(account, days[0]))
		}
		if r := p.receipts(account, lines); len(r.Matches) != 7 || len(r.Breaks)+len(r.Proposals)+len(r.Waiting) != 0 {
			t.Errorf("%s: %d matches, %q, %d proposals, %v wait", account, len(r.Matches), found(r), len(r.Proposals), r.Waiting)
		}
	}
	if _, faults := p.read("banque"); faults != nil {
		t.Errorf("banque: %v in\n%s", faults, p.file("banque", days[0]))
	}
	// Two payouts of each; MTN's statements name no batch.
	r := p.settlements()
	if len(r.Matches) != 6 || len(r.Proposals) != 2 || len(r.Breaks) != 0 {
		t.Errorf("%d matches, %d proposals, %q", len(r.Matches), len(r.Proposals), found(r))
	}
	for _, says := range []string{"055000001", "242066000001"} {
		if !strings.Contains(p.file("mtn", days[0])+p.file("airtel", days[0]), says) {
			t.Errorf("no statement has the number %s, which the readers must drop", says)
		}
	}
	p.valid(t)
}

// Operators do not pay at the very cut-off. The payouts of MTN, whose statements name no batch, are found by their cut-off window
// all the same.
func TestPayoutsAfterTheCutoff(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ cutoff, delay time.Duration }{
		"five minutes after midnight": {0, 5 * time.Minute}, "a second before midnight": {0, -time.Second}, "on the next morning": {17 * time.Hour, 16 * time.Hour}, "at once": {17 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := func(code, profile, number string) simulator.StatementAccount {
				return simulator.StatementAccount{Code: code, Profile: profile, Number: number, Currency: "XAF", Zone: wat, Cutoff: of.cutoff, PayoutDelay: of.delay, SettlesTo: "banque"}
			}
			bank := account("banque", "camt.053", "")
			bank.IBAN, bank.SettlesTo = "CG3930011000101013451300019", ""
			p := twoDays(t, account("mtn", "mtn", "46733123454"), account("airtel", "airtel", "MER-042"), account("cartes", "card-settlement", ""), account("guichets", "cash-slip", ""), bank)
			r := p.settlements()
			if len(r.Matches) != 6 || len(r.Proposals) != 2 || len(r.Breaks)+len(r.Waiting) != 0 {
				t.Errorf("%d matches, %d proposals, %q, %v", len(r.Matches), len(r.Proposals), found(r), r.Waiting)
			}
		})
	}
}

// valid checks the bank's files against the ISO schema.
func (p *purse) valid(t *testing.T) {
	t.Helper()
	if testing.Short() {
		return
	}
	root, dir := filepath.Join("..", ".."), t.TempDir()
	p.fault("banque", `{"fault": "reversal", "day": "2026-09-30"}`)
	var files []string
	for _, day := range append([]string{"2026-09-29"}, days...) { // also without entries
		files = append(files, filepath.Join(dir, day+".xml"))
		if err := os.WriteFile(files[len(files)-1], []byte(p.file("banque", day)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.control("/statements/banque", `{"reset": true}`)
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, ".deps/iso20022/bin/python"), append([]string{filepath.Join(root, "test/tools/iso20022/validate.py")}, files...)...).CombinedOutput()
	if err != nil {
		t.Errorf("by the ISO schema: %v\n%s", err, out)
	}
}

// fault plants a fault.
func (p *purse) fault(account, body string) {
	p.t.Helper()
	if a := p.control("/statements/"+account, body); a.status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", body, a.status, a.body)
	}
}

// Each planted fault is found, and nothing else: by the readers in the files, or by the matcher
// among the lines.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	p := twoDays(t)
	duplicate := []statements.FaultKind{statements.FaultDuplicateLine}
	all := map[string]map[string]struct {
		faults []statements.FaultKind
		breaks []string
	}{}
	for j, account := range paying {
		first, second, amount := account+" 01", account+" 02", 10_000+100*j
		reversed := fmt.Sprintf("reversed_line -%d of 1 lines and %s", amount, first)
		if account == "cartes" { // an acquirer's references are not ours
			reversed = fmt.Sprintf("unmatched_line -%d of 1 lines and ", amount)
		}
		all[account] = map[string]struct {
			faults []statements.FaultKind
			breaks []string
		}{
			"drop":     {nil, []string{fmt.Sprintf("missing_line -%d of 0 lines and %s", amount, first)}},
			"double":   {duplicate, []string{fmt.Sprintf("duplicate_line +%d of 2 lines and %s", amount, first)}},
			"one_more": {nil, []string{"amount +1 of 1 lines and " + first}},
			"one_less": {nil, []string{"amount -1 of 1 lines and " + first}},
			"swap":     {nil, []string{"unmatched_line +0 of 2 lines and " + first + ", " + second}},
			"reversal": {nil, []string{reversed}},
			"overlap":  {nil, nil},
			"utc":      {nil, nil}, // references match whatever the time, see below
		}
	}
	delete(all["cartes"], "swap")
	all["mtn"]["net"] = struct {
		faults []statements.FaultKind
		breaks []string
	}{nil, []string{"fee -100 of 1 lines and mtn 01"}}
	for account, rows := range all {
		for kind, want := range rows {
			day := days[0]
			if kind == "overlap" {
				day = days[1] // there is a day before it
			}
			p.fault(account, fmt.Sprintf(`{"fault": %q, "day": %q}`, kind, day))
			lines, faults := p.read(account)
			r := p.receipts(account, lines)
			if got := found(r); !slices.Equal(got, want.breaks) || !slices.Equal(faults, want.faults) {
				t.Errorf("%s of %s: %q and %v, want %q and %v", kind, account, got, faults, want.breaks, want.faults)
			}
			p.control("/statements/"+account, `{"reset": true}`)
		}
	}
	for account, kinds := range map[string][]string{"mtn": {"rounding", "truncated"}, "airtel": {"rounding", "truncated"}, "cartes": {"truncated"}, "guichets": {"rounding", "truncated"}, "banque": {"truncated"}} {
		for _, kind := range kinds {
			before, _ := p.read(account)
			p.fault(account, fmt.Sprintf(`{"fault": %q, "day": "2026-09-30"}`, kind))
			after, faults := p.read(account)
			if len(faults) == 0 || kind == "rounding" && faults[0] != statements.FaultReference || len(after) >= len(before) {
				t.Errorf("%s of %s: %v, %d lines of %d", kind, account, faults, len(after), len(before))
			}
			p.control("/statements/"+account, `{"reset": true}`)
		}
	}
}

// A payout that does not come, comes twice, one franc short or is taken back.
func TestPlantedFaultsAtTheBank(t *testing.T) {
	t.Parallel()
	p := twoDays(t)
	whole := p.settlements()
	ids := map[string]bool{}
	for _, m := range whole.Matches {
		ids[m.ID] = true
	}
	for kind, want := range map[string]string{"drop": "missing_line", "double": "duplicate_line", "one_less": "amount", "one_more": "amount", "reversal": "reversed_line"} {
		p.fault("banque", fmt.Sprintf(`{"fault": %q, "line": "BKAM-20260930"}`, kind))
		r := p.settlements()
		if len(r.Breaks) != 1 || string(r.Breaks[0].Kind) != want {
			t.Errorf("%s: %q, want %s", kind, found(r), want)
		}
		for _, m := range r.Matches {
			if !ids[m.ID] {
				t.Errorf("%s makes the match %+v", kind, m)
			}
		}
		p.control("/statements/banque", `{"reset": true}`)
	}
	p.fault("banque", `{"fault": "swap", "line": "BKAM-20260930"}`)
	if r := p.settlements(); len(r.Breaks) == 0 {
		t.Error("exchanged batches are not found")
	}
	p.control("/statements/banque", `{"reset": true}`)
	// The operator's statement lacks a line that it has paid out.
	p.fault("airtel", `{"fault": "drop", "day": "2026-09-30"}`)
	if got := found(p.settlements()); len(got) != 1 || !strings.HasPrefix(got[0], "amount +9999 of 1 lines and airtel/") {
		t.Errorf("a payout with a line less: %q", got)
	}
}

// A statement with days in UTC books what was paid after midnight on the day before: the days
// of a payment without references then differ.
func TestStatementsInUTC(t *testing.T) {
	t.Parallel()
	p := twoDays(t)
	bare := func() match.Result {
		lines, faults := p.read("mtn")
		if faults != nil {
			t.Fatal(faults)
		}
		for i := range lines {
			lines[i].OperatorRef, lines[i].PaymentRef = "", ""
		}
		return p.receipts("mtn", lines)
	}
	if r := bare(); len(r.Proposals) != 7 || len(r.Breaks) != 0 {
		t.Errorf("without the fault: %d proposals, %q", len(r.Proposals), found(r))
	}
	p.fault("mtn", `{"fault": "utc"}`)
	if r := bare(); len(r.Proposals) != 6 || !slices.Equal(found(r), []string{"missing_line -15000 of 0 lines and mtn 06", "unmatched_line +15000 of 1 lines and "}) {
		t.Errorf("with the fault: %d proposals, %q", len(r.Proposals), found(r))
	}
}

// Cash that was given back the same day is a line of its own, and the slip's sum is without it.
func TestStatementOfCashGivenBack(t *testing.T) {
	t.Parallel()
	p := newPurse(t, nil)
	p.at(0, "10:00")
	p.pay("guichets", 5000)
	p.pay("guichets", 7000)
	if a := p.control("/counter/"+p.expected["guichets"][0].PaymentRef+"/reverse", ""); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	back := p.expected["guichets"][0]
	back.ID, back.Amount = "back", -5000
	p.expected["guichets"] = append(p.expected["guichets"], back)
	p.at(2, "20:00")
	lines, faults := p.read("guichets")
	if r := p.receipts("guichets", lines); len(r.Matches) != 3 || len(r.Breaks) != 0 || faults != nil {
		t.Errorf("%d matches, %q, %v in\n%s", len(r.Matches), found(r), faults, p.file("guichets", days[0]))
	}
	if r := p.settlements(); len(r.Matches) != 1 || r.Matches[0].Amount != 7000 {
		t.Errorf("%+v, %q", r.Matches, found(r))
	}
}

// Faulty requests name the field and the mend, and change nothing.
func TestStatementsRefuse(t *testing.T) {
	t.Parallel()
	p := newPurse(t, nil)
	p.at(0, "10:00")
	p.pay("mtn", 5000)
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		says               []string
	}{
		"account":        {http.MethodGet, "nobody", "", 404, []string{"account", "mtn, airtel, cartes, guichets, banque"}},
		"agency":         {http.MethodGet, "mtn?agency=nobody", "", 404, []string{"account"}},
		"day":            {http.MethodGet, "mtn?day=30/09/2026", "", 422, []string{"day", "2026-11-23"}},
		"tomorrow":       {http.MethodGet, "mtn?day=2026-10-01", "", 422, []string{"day", "in the future", "2026-09-30"}},
		"fault":          {http.MethodPost, "mtn", `{"fault": "theft"}`, 422, []string{"fault", "theft", "one_more"}},
		"no fault":       {http.MethodPost, "mtn", `{}`, 422, []string{"fault"}},
		"swap of cards":  {http.MethodPost, "cartes", `{"fault": "swap"}`, 422, []string{"fault", "swap"}},
		"net of a bank":  {http.MethodPost, "banque", `{"fault": "net"}`, 422, []string{"fault", "net"}},
		"line":           {http.MethodPost, "mtn", `{"fault": "drop", "line": "1"}`, 422, []string{"line", "take an id"}},
		"nothing to aim": {http.MethodPost, "airtel", `{"fault": "drop"}`, 422, []string{"day", "pay something"}},
		"swap alone":     {http.MethodPost, "mtn", `{"fault": "swap"}`, 422, []string{"line", "pay once more"}},
		"member":         {http.MethodPost, "mtn", `{"fault": "drop", "dey": "x"}`, 422, []string{"dey"}},
		"reset":          {http.MethodPost, "mtn", `{"fault": "drop", "reset": true}`, 422, []string{"reset"}},
	} {
		a := p.call(row.method, "/control/statements/"+row.path, row.body, asJSON)
		if a.status != row.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		for _, says := range row.says {
			if !strings.Contains(a.body, says) {
				t.Errorf("%s: %s lacks %q", name, a.body, says)
			}
		}
	}
	var list []struct {
		Account string
		Faults  []any
	}
	p.call(http.MethodGet, "/control/statements", "", nil).decode(t, &list)
	if len(list) != 5 || len(list[0].Faults) != 0 {
		t.Errorf("%+v", list)
	}
	one, two := p.file("mtn", ""), p.file("mtn", days[0])
	if one != two || !bytes.Contains([]byte(one), []byte(p.expected["mtn"][0].OperatorRef)) {
		t.Errorf("today's is %q, and of the day %q", one, two)
	}
	if got := slices.Sorted(maps.Keys(accounts)); !reflect.DeepEqual(got, []string{"airtel", "banque", "cartes", "guichets", "mtn"}) {
		t.Error(got)
	}
}
