package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quittance/checkout"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/mtn"
	"quittance/internal/registry"
	"quittance/test/registries"
)

// payouts describes the payout accounts of an agency: "mtn_payout[mobile_money salaries]", in the order of the list; * for
// one with the simulators.
func payouts(r registries.Instance, agencyID string, live bool) string {
	var out []string
	for _, a := range r.PayoutAccounts(agencyID, live) {
		mark := map[bool]string{true: "*"}[a.Simulated]
		out = append(out, a.Code+mark+"["+strings.Join(a.Modes, " ")+"]")
	}
	return strings.Join(out, " ")
}

const airtelPayout = "airtel_payout: {base_url: https://airtel.example.org, client_id: a, client_secret: airtel-secret-private, pin: airtel-pin-private, public_key: k, modes: "

// In developer mode an account with the simulators replaces a missing test account, and takes no mode that the agency has
// given to an account of its own.
func TestPayoutAccounts(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, "agencies: [{id: "+registries.AgencyB+", slug: douanes, name: X}]")
	r := h.Open(t)
	if got := payouts(r, registries.AgencyA, false); got != "airtel_payout*[airtel] mtn_payout[mobile_money salaries] switch_payout*[switch]" {
		t.Errorf("test accounts: %s", got)
	}
	if got := payouts(r, registries.AgencyB, false); got != "airtel_payout*[airtel] mtn_payout*[mobile_money mtn] switch_payout*[switch]" {
		t.Errorf("of an agency without accounts: %s", got)
	}
	for _, agency := range []string{registries.AgencyA, registries.AgencyB} {
		if got := payouts(r, agency, true); got != "" {
			t.Errorf("something stands in for a live account: %s", got)
		}
	}
	if got := payouts(r, "018f0000-0000-7000-8000-000000000003", false); got != "" {
		t.Errorf("an unknown agency has accounts: %s", got)
	}
	production := func(cfg *registries.Config) { cfg.Simulators = "" }
	if r := h.Open(t, production); payouts(r, registries.AgencyA, false) != "mtn_payout[mobile_money salaries]" || payouts(r, registries.AgencyB, false) != "" {
		t.Error("outside developer mode the simulators stand in")
	}

	a := r.PayoutAccounts(registries.AgencyA, false)[1]
	want := mtn.PayoutAccount{BaseURL: "https://payout.example.org", TargetEnvironment: "sandbox", SubscriptionKey: "payout-sub-private", APIUser: "payout-user", APIKey: "payout-key-private"}
	if a.Code != "mtn_payout" || a.Operator != mtn.Operator || a.Account != want || a.Replaced || a.Locked {
		t.Errorf("account = %+v", a)
	}
	simulated := r.PayoutAccounts(registries.AgencyA, false)[0]
	if account, ok := simulated.Account.(airtel.PayoutAccount); !ok || simulated.Operator != airtel.Operator || account.BaseURL != "http://127.0.0.1:9001/airtel" || account.ClientID != registries.AgencyA {
		t.Errorf("simulated account = %+v", simulated)
	}
	if s := fmt.Sprintf("%+v %#v", a, a); slices.ContainsFunc(registries.Plain, func(secret string) bool { return strings.Contains(s, secret) }) {
		t.Error("an account prints a secret")
	}

	before := r.Revision()
	for modes, want := range map[string]string{
		"[mobile_money]":      "airtel_payout[mobile_money] mtn_payout*[mtn] switch_payout*[switch]",
		"[mobile_money, mtn]": "airtel_payout[mobile_money mtn] mtn_payout*[] switch_payout*[switch]",
		"[aid]":               "airtel_payout[aid] mtn_payout*[mobile_money mtn] switch_payout*[switch]",
	} {
		h.Seed(t, "agencies: [{id: "+registries.AgencyB+", slug: douanes, name: X, payouts: {test: {"+airtelPayout+modes+"}}}}]")
		if got := payouts(h.Open(t), registries.AgencyB, false); got != want {
			t.Errorf("with %s: %s, want %s", modes, got, want)
		}
	}
	if after := h.Open(t).Revision(); after <= before {
		t.Errorf("revision %d after %d", after, before)
	}
}

// The simulators do not stand in for a mode whose row somebody has changed.
func TestForgedModeIsNotSimulated(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, "agencies: [{id: "+registries.AgencyA+", slug: impots, name: X, payouts: {test: {"+airtelPayout+"[mobile_money, mtn]}}}}]")
	h.Exec(t, `UPDATE payout_modes SET account = 'mtn_payout'`)
	if got := payouts(h.Open(t), registries.AgencyA, false); got != "airtel_payout[] mtn_payout*[] switch_payout*[switch]" {
		t.Errorf("accounts: %s", got)
	}
}

// Whoever can write to Postgres has another account of the agency pay the lines of a mode. Neither pays them then.
func TestForgedModeHasNoAccount(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, "agencies: [{id: "+registries.AgencyA+", slug: impots, name: X, payouts: {test: {"+airtelPayout+"[aid]}}}}]")
	const before = "airtel_payout[aid] mtn_payout[mobile_money salaries] switch_payout*[switch]"
	if got := payouts(h.Open(t), registries.AgencyA, false); got != before {
		t.Fatalf("before: %s", got)
	}
	h.Exec(t, `UPDATE payout_modes SET account = 'airtel_payout' WHERE mode = 'mobile_money'`)
	if got := payouts(h.Open(t), registries.AgencyA, false); got != "airtel_payout[aid] mtn_payout[salaries] switch_payout*[switch]" {
		t.Errorf("accounts: %s", got)
	}
	if rows, _ := findings(t, h); rows != "payout_modes" {
		t.Errorf("found %q", rows)
	}
}

// An attempt finds its account after the account's address or secret was corrected, and after the agency has another one.
// Accounts of the two purposes never stand for each other.
func TestAccountOfAttempt(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	finds := func(fingerprint string, want mtn.PayoutAccount, replaced bool) {
		t.Helper()
		a, ok := r.PayoutAccount(registries.AgencyA, false, "mtn_payout", fingerprint)
		if !ok || a.Account != want || a.Replaced != replaced || a.Operator != mtn.Operator || a.Code != "mtn_payout" || replaced != (a.Modes == nil) {
			t.Errorf("%q: %+v, %v", fingerprint, a, ok)
		}
	}
	first := r.PayoutAccounts(registries.AgencyA, false)[1].Account.(mtn.PayoutAccount)
	collecting, _ := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo)
	finds("", first, false)
	finds(first.Fingerprint(), first, false)

	h.Seed(t, registries.Edit(t, "payout-key-private", "payout-key-rotated"))
	r = h.Open(t)
	rotated := first
	rotated.APIKey = "payout-key-rotated"
	finds(first.Fingerprint(), rotated, false)

	h.Seed(t, registries.Edit(t, "api_user: payout-user", "api_user: payout-other"))
	r = h.Open(t)
	other := first
	other.APIUser = "payout-other"
	finds("", other, false)
	finds(other.Fingerprint(), other, false)
	finds(first.Fingerprint(), rotated, true)

	for _, c := range []struct {
		agencyID          string
		live              bool
		code, fingerprint string
	}{
		{registries.AgencyA, false, "mtn_payout", "0123456789abcdef"},
		{registries.AgencyA, true, "mtn_payout", first.Fingerprint()},
		{registries.AgencyA, true, "mtn_payout", ""},
		{registries.AgencyB, false, "mtn_payout", ""},
		{registries.AgencyA, false, "airtel_payout", first.Fingerprint()},
		{registries.AgencyA, false, "momo", ""},
		{registries.AgencyA, false, "momo", collecting.Account.Fingerprint()},
		{registries.AgencyA, false, "mtn_payout", collecting.Account.Fingerprint()},
		{registries.AgencyA, false, "card", ""},
		{registries.AgencyA, false, "", ""},
	} {
		if a, ok := r.PayoutAccount(c.agencyID, c.live, c.code, c.fingerprint); ok {
			t.Errorf("%+v finds %+v", c, a)
		}
	}
	for _, fingerprint := range []string{first.Fingerprint(), other.Fingerprint()} {
		if a, ok := r.CollectingAccount(registries.AgencyA, false, mtn.Operator, fingerprint); ok {
			t.Errorf("a collection finds the payout account %+v", a)
		}
	}
	if a, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo); !ok || a.Account != collecting.Account {
		t.Errorf("the account of payers is %+v", a)
	}
}

// An account that does not open is listed and cannot be found: requests wait.
func TestLockedPayoutAccount(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t, withoutTheOldKey(t, h))
	list := r.PayoutAccounts(registries.AgencyA, false)
	i := slices.IndexFunc(list, func(a registry.PayoutAccount) bool { return a.Code == "mtn_payout" })
	if i < 0 || !list[i].Locked || list[i].Simulated || !slices.Equal(list[i].Modes, []string{"mobile_money", "salaries"}) {
		t.Errorf("accounts: %+v", list)
	}
	if a, ok := r.PayoutAccount(registries.AgencyA, false, "mtn_payout", ""); ok {
		t.Errorf("a locked account is found: %+v", a)
	}
}
