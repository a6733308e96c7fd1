package roles

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"quittance/disbursement/digest"
	"quittance/internal/connector/mtn"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
	"quittance/test/registries"
)

// The sink opens payout accounts and lines with the keys of its role. The ingress has the same account without the secrets
// that pay.
func TestDisburseWithItsKeys(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	now := func() time.Time { return registries.Epoch }
	role := func(name string) *Base {
		i := slices.IndexFunc(Table(), func(r Role) bool { return r.Name == name })
		keys := h.Keys.Subset(name, Table()[i].Keys)
		store, err := personal.New(personal.Config{Pool: h.Pool, Keys: keys, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return &Base{Registry: h.Open(t, func(cfg *registries.Config) { cfg.Keys = keys }).Registry, Personal: store}
	}
	b := role("disburse")
	whole := mtn.PayoutAccount{BaseURL: "https://payout.example.org", TargetEnvironment: "sandbox", SubscriptionKey: "payout-sub-private", APIUser: "payout-user", APIKey: "payout-key-private"}
	account, ok := b.configuration().PayoutAccount(registries.AgencyA, false, "mtn_payout", whole.Fingerprint())
	if !ok || account.Account != whole || account.Operator != mtn.Operator || account.Replaced {
		t.Errorf("account %+v, %v", account, ok)
	}
	if a, ok := b.configuration().PayoutAccount(registries.AgencyA, true, "mtn_payout", whole.Fingerprint()); ok {
		t.Errorf("a live attempt finds %+v", a)
	}
	if a, ok := b.Registry.MerchantAccount(registries.AgencyA, false, "momo"); !ok || a.Locked {
		t.Errorf("the account of payers: %+v, %v", a, ok) // one label seals both
	}
	edge, _ := role("ingress").configuration().PayoutAccount(registries.AgencyA, false, "mtn_payout", whole.Fingerprint())
	if a, _ := edge.Account.(mtn.PayoutAccount); a.APIUser != "payout-user" || a.APIKey != "" || a.SubscriptionKey != "" {
		t.Error("the ingress has the secrets of a payout account, or not its fingerprint")
	}

	connectors, err := (&Base{Now: now}).payoutConnectors()
	if err != nil || connectors[account.Operator] == nil || len(connectors) != 3 {
		t.Errorf("connectors %v, %v", connectors, err)
	}

	const batch = "dsb_0000000000000000000000000001"
	salt := [32]byte{1, 2, 3}
	line := digest.Line{Amount: 25_000, Currency: "XAF", LineRef: "L-1", MSISDN: "242066000001", Name: "A. Beneficiary", PaymentMode: "salaries", PayoutAccount: "mtn_payout"}
	content, err := lines.Content(salt, line)
	if err != nil {
		t.Fatal(err)
	}
	all, err := personal.New(personal.Config{Pool: h.Pool, Keys: h.Keys, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	seal := func(position int, content json.RawMessage) []byte {
		sealed, err := all.SealLine(t.Context(), personal.LineID(batch, position), content, personal.Payee{}, registries.Epoch.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	sealed := seal(7, content)
	if s, l, err := b.openLine(t.Context(), batch, 7, sealed); err != nil || s != salt || l != line {
		t.Errorf("line %+v, %v", l, err)
	}
	if _, l, err := b.openLine(t.Context(), batch, 8, sealed); err == nil || l != (digest.Line{}) {
		t.Errorf("as another line it is %+v, %v", l, err)
	}
	// What is no content of a line is another one than was approved.
	if s, l, err := b.openLine(t.Context(), batch, 9, seal(9, json.RawMessage(`{"amount":25000}`))); err != nil || l != (digest.Line{}) || s != ([32]byte{}) {
		t.Errorf("another form is %+v, %v", l, err)
	}
	if _, err := h.Pool.Exec(t.Context(), `DELETE FROM personal_keys WHERE session_id = $1`, personal.LineID(batch, 7)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.openLine(t.Context(), batch, 7, sealed); !errors.Is(err, personal.ErrErased) {
		t.Errorf("an erased line: %v", err)
	}
}
