package registry_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/connector/mtn"
	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/statements"
	"quittance/test/registries"
)

func TestStatementAccounts(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	key := registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: "mtn"}
	a, ok := r.StatementAccount(key)
	if !ok || a.Kind != registry.AccountOperator || a.Offer != "momo" || a.Currency != "XAF" || a.Cutoff != 17*time.Hour || a.CutoffText() != "17:00" || a.GraceDays != 3 || a.SettlesTo != "banque" {
		t.Fatalf("%+v, %v", a, ok)
	}
	key.Live = true
	if _, ok := r.StatementAccount(key); ok {
		t.Error("the test account is a live one")
	}
	var codes []string
	for _, a := range r.StatementAccounts(registries.AgencyA, false) {
		codes = append(codes, a.Code)
	}
	if got := strings.Join(codes, " "); got != "banque card guichets mtn mtn-old" {
		t.Errorf("test accounts: %s", got)
	}

	// Files are read with the columns, the zone and the pattern of the registry.
	bank, err := registryAccount(t, r, false, "banque").Reader()
	if err != nil || bank.IBAN != "CG3930011000101013451300019" || !bank.Batch.MatchString("VIR MTN-20261121") || bank.Zone.String() != registry.DefaultZone {
		t.Errorf("%+v, %v", bank, err)
	}
	own, err := registryAccount(t, r, true, "bourse").Reader()
	if err != nil {
		t.Fatal(err)
	}
	file, err := statements.Read(strings.NewReader("Date;;;;;\n02/03/2026;1;A7;1.200,50;EUR;30012 00105 00012345678 90\n"), own, nil)
	if err != nil || file.Refused() || file.Lines != 1 || file.Statements[0].Net != 120050 {
		t.Errorf("%+v, %v", file, err)
	}

	// The same file again changes nothing, a corrected field is set.
	if report := h.Seed(t, registries.Full); report.Changed || report.Accounts != 6 {
		t.Errorf("applied again: %+v", report)
	}
	h.Seed(t, registries.Edit(t, "grace_days: 3, ", ""))
	if a := registryAccount(t, h.Open(t), false, "mtn"); a.GraceDays != registry.DefaultGraceDays {
		t.Errorf("the whole account replaces the one before: %+v", a)
	}
}

func registryAccount(t *testing.T, r registries.Instance, live bool, code string) registry.StatementAccount {
	t.Helper()
	a, ok := r.StatementAccount(registry.StatementAccountKey{AgencyID: registries.AgencyA, Live: live, Code: code})
	if !ok {
		t.Fatalf("no account %s", code)
	}
	return a
}

// The money of a merchant account that was replaced stays on its own statements.
func TestStatementAccountOf(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	of := func(live bool, offer, currency, fingerprint string) string {
		a, _ := r.StatementAccountOf(registries.AgencyA, live, offer, currency, fingerprint)
		return a.Code
	}
	present, _ := r.MerchantAccount(registries.AgencyA, false, "momo")
	for _, c := range []struct{ offer, currency, fingerprint, want string }{
		{"momo", "XAF", present.Account.Fingerprint(), "mtn"},
		{"momo", "XAF", "", "mtn"}, // collections of early releases
		{"momo", "XAF", "0123456789abcdef", "mtn-old"},
		{"card", "EUR", "", "card"},
		{"card", "XAF", "", ""},
		{"cash_agency", "XAF", "", "guichets"},
		{"momo_b", "XAF", "", ""},
	} {
		if got := of(false, c.offer, c.currency, c.fingerprint); got != c.want {
			t.Errorf("%s %s %s is on %q, want %q", c.offer, c.currency, c.fingerprint, got, c.want)
		}
	}
	if got := of(true, "momo", "XAF", ""); got != "" {
		t.Errorf("live money is on %q", got)
	}

	// A replaced account that a collection names in the earlier form.
	was := present.Account.(mtn.Account)
	text := strings.Replace(registries.Edit(t, "api_user: momo-user", "api_user: momo-user-2"), "0123456789abcdef", was.Fingerprint(), 1)
	h.Seed(t, text)
	r = h.Open(t)
	if got := of(false, "momo", "XAF", was.EarlierFingerprint()); got != "mtn-old" {
		t.Errorf("the earlier form is on %q", got)
	}
}

// Citizens transfer money to one account at a time. A transfer stays on the account that it names when citizens get
// another one.
func TestStatementAccountOfTransfers(t *testing.T) {
	t.Parallel()
	const (
		plain  = "{code: banque, kind: bank, iban"
		taking = "{code: banque, kind: bank, offer: bank_transfer, holder: Trésor public, bank: Banque d’essai, iban"
		second = "{code: banque-2, kind: bank, offer: bank_transfer, holder: Trésor public, bank: Autre banque, number: 30011-00001, profile: camt.053}"
		end    = "        - {code: card, kind: acquirer"
	)
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	of := func(currency, code string) string {
		a, _ := h.Open(t).StatementAccountOf(registries.AgencyA, false, checkout.OfferBankTransfer, currency, code)
		return a.Code
	}
	takes := func(currency string) bool {
		return h.Open(t).Takes(registries.AgencyA, false, checkout.OfferBankTransfer, currency)
	}
	if of("XAF", "") != "" || takes("XAF") {
		t.Error("an account without the offer takes transfers")
	}

	// An account that is known gets the offer.
	text := registries.Edit(t, plain, taking)
	h.Seed(t, text)
	a := registryAccount(t, h.Open(t), false, "banque")
	if a.Offer != checkout.OfferBankTransfer || a.Holder != "Trésor public" || a.Bank != "Banque d’essai" {
		t.Fatalf("%+v", a)
	}
	if of("XAF", "") != "banque" || of("XAF", "banque") != "banque" || of("EUR", "") != "" || of("XAF", "mtn") != "" || of("XAF", "unknown") != "" {
		t.Errorf("%q %q %q %q", of("XAF", ""), of("XAF", "banque"), of("EUR", ""), of("XAF", "mtn"))
	}
	if !takes("XAF") || takes("EUR") || h.Open(t).Takes(registries.AgencyA, true, checkout.OfferBankTransfer, "XAF") {
		t.Error("transfers are not taken in the account's mode and currency alone")
	}

	// A second account in the currency must take the offer from the first one.
	var faults *form.FaultsError
	both := strings.Replace(text, end, "        - "+second+"\n"+end, 1)
	if _, err := h.TrySeed(t, both); !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Field != "agencies[0].accounts.test[4].offer" {
		t.Errorf("two accounts: %v", err)
	}
	h.Seed(t, strings.Replace(both, taking, plain, 1))
	if of("XAF", "") != "banque-2" || of("XAF", "banque-2") != "banque-2" || of("XAF", "banque") != "banque" {
		t.Errorf("moved: %q %q %q", of("XAF", ""), of("XAF", "banque-2"), of("XAF", "banque"))
	}
}

func TestFixedFieldsOfStatementAccounts(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	for _, c := range [][2]string{
		{"offer: momo, number", "offer: momo_b, number"}, {"currency: EUR, profile: card", "currency: USD, profile: card"}, {"zone: Europe/Paris", "zone: Europe/London"},
	} {
		if _, err := h.TrySeed(t, registries.Edit(t, c[0], c[1])); err == nil {
			t.Errorf("%q was set", c[1])
		}
	}
	list, err := registry.ListStatementAccounts(t.Context(), h.Pool, "impots")
	if err != nil || len(list) != 6 || list[5].Code != "bourse" || list[5].Agency != "impots" {
		t.Errorf("%+v, %v", list, err)
	}
	s, err := registry.Read(t.Context(), h.Pool)
	if err != nil {
		t.Fatal(err)
	}
	var refused *operation.Error
	if _, err := s.FindStatementAccount(registries.AgencyA, true, "mtn"); !errors.As(err, &refused) || refused.Code != "account.unknown" {
		t.Errorf("an account of the other mode: %v", err)
	}
}

func TestParseIBAN(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"CG39 3001 1000 1010 1345 1300 019": true, "cg3930011000101013451300019": true, "FR76 3000 6000 0112 3456 7890 189": true, "NO93 8601 1117 947": true,
		"CG3930011000101013451300018": false, "CG393001100010101345130001": false, "": false, "CG": false, "CG39-3001": false,
		"GB82 WEST 1234 5698 7654 32": true, "GB82 WEST 1234 5698 7654 33": false,
	} {
		if _, ok := registry.ParseIBAN(text); ok != want {
			t.Errorf("%s is valid: %v", text, ok)
		}
	}
}
