package registryfile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"quittance/internal/form"
	"quittance/test/registries"
)

// paying is a registry file with payouts of the agency in test mode.
func paying(accounts ...string) string {
	return "agencies: [{id: " + registries.AgencyA + ", slug: impots, name: X, payouts: {test: {" + strings.Join(accounts, ", ") + "}}}]"
}

func mtnPays(user string, modes ...string) string {
	return "mtn_payout: {modes: [" + strings.Join(modes, ", ") + "], base_url: https://payout.example.org, target_environment: sandbox, subscription_key: payout-sub-private, api_user: " + user + ", api_key: payout-key-private}"
}

func airtelPays(modes ...string) string {
	return "airtel_payout: {modes: [" + strings.Join(modes, ", ") + "], base_url: https://airtel.example.org, client_id: a, client_secret: airtel-secret-private, pin: airtel-pin-private, public_key: k}"
}

// configured says which accounts pay which modes in test mode: "airtel_payout=aid mtn_payout=mobile_money,salaries".
func configured(t *testing.T, h registries.House) string {
	t.Helper()
	var out []string
	r := h.Open(t, func(cfg *registries.Config) { cfg.Simulators = "" })
	for _, a := range r.PayoutAccounts(registries.AgencyA, false) {
		out = append(out, a.Code+"="+strings.Join(a.Modes, ","))
	}
	return strings.Join(out, " ")
}

// A file sets the whole list of the modes of the accounts that it names. What it omits stays, as with connectors.
func TestPayoutsOfAFile(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	const full = "mtn_payout=mobile_money,salaries"
	for _, c := range []struct{ file, want string }{
		{registries.Full, full},
		{"agencies: [{id: " + registries.AgencyA + ", slug: impots, name: X}]", full},
		{"agencies: [{id: " + registries.AgencyA + ", slug: impots, name: X, payouts: {}}]", full},
		{paying(), full},
		{paying(airtelPays("aid")), "airtel_payout=aid " + full},
		{paying(mtnPays("payout-user", "salaries")), "airtel_payout=aid mtn_payout=salaries"},
		{paying(mtnPays("payout-user", "aid"), airtelPays("salaries")), "airtel_payout=salaries mtn_payout=aid"}, // each takes the other's
		{paying(mtnPays("payout-user", "salaries"), airtelPays("aid")), "airtel_payout=aid mtn_payout=salaries"},
	} {
		h.Seed(t, c.file)
		if got := configured(t, h); got != c.want {
			t.Errorf("after %s: %s, want %s", c.file, got, c.want)
		}
		if h.Seed(t, c.file).Changed {
			t.Errorf("again %s is a change", c.file)
		}
	}
}

// A line of a mode has one account: another account of the database has the mode, which the file does not name.
func TestPaymentModeOfAnotherAccount(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	_, err := h.TrySeed(t, paying(airtelPays("salaries", "aid")))
	var faults *form.FaultsError
	if !errors.As(err, &faults) || len(faults.Faults) != 1 {
		t.Fatalf("error = %v", err)
	}
	if f := faults.Faults[0]; f.Field != agency0+".payouts.test.airtel_payout.modes" || !strings.Contains(f.Message, "salaries, which mtn_payout of the agency pays") || strings.Contains(f.Message, "aid") {
		t.Errorf("fault = %+v", f)
	}
	if got := configured(t, h); got != "mtn_payout=mobile_money,salaries" {
		t.Errorf("a refused file has changed something: %s", got)
	}
	// Another agency, or the other mode, has modes of its own.
	other := strings.Replace(paying(airtelPays("salaries")), registries.AgencyA, registries.AgencyB, 1)
	h.Seed(t, strings.Replace(other, "slug: impots", "slug: douanes", 1))
	// What somebody else has written takes no mode.
	h.Exec(t, `UPDATE payout_modes SET account = 'mtn_payout', mode = 'aid' WHERE agency_id = $1 AND mode = 'salaries'`, registries.AgencyA)
	h.Seed(t, paying(airtelPays("aid")))
	if got := configured(t, h); got != "airtel_payout=aid mtn_payout=mobile_money" {
		t.Errorf("over a forged mode: %s", got)
	}
}

// Messages say where a misplaced account belongs, and show no secret of it.
func TestMisplacedAccounts(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	for _, c := range []struct{ file, path, belongs string }{
		{strings.Replace(paying(mtnPays("payout-user", "aid")), "payouts:", "connectors:", 1), agency0 + ".connectors.test.mtn_payout", "set it in payouts of the agency"},
		{strings.Replace(paying(mtnPays("payout-user", "aid")), "mtn_payout:", "momo:", 1), agency0 + ".payouts.test.momo", "set it in connectors of the agency"},
	} {
		_, err := h.TrySeed(t, c.file)
		var faults *form.FaultsError
		if !errors.As(err, &faults) || len(faults.Faults) != 1 {
			t.Errorf("error = %v", err)
			continue
		}
		if f := faults.Faults[0]; f.Field != c.path || !strings.Contains(f.Message, c.belongs) {
			t.Errorf("fault = %+v", f)
		}
		if slices.ContainsFunc(registries.Plain, func(s string) bool { return strings.Contains(fmt.Sprint(err), s) }) {
			t.Error("the error shows a secret")
		}
	}
}
