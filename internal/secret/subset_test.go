package secret_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/internal/secret"
)

var (
	sealing   = secret.Use{Purpose: secret.PurposeSeal, Label: "webhook secrets"}
	macs      = secret.Use{Purpose: secret.PurposeMAC, Label: "callback"}
	signing   = secret.Use{Purpose: secret.PurposeSign, Label: "rows"}
	verifying = secret.Use{Purpose: secret.PurposeVerify, Label: "rows"}
)

// role returns the keys of a role as its process reads them.
func role(t *testing.T, of *secret.Keys, uses ...secret.Use) *secret.Keys {
	t.Helper()
	return parse(t, of.Subset("webhook", uses).Reveal())
}

// A role opens, verifies and signs what its keys are for, as the master keys do, and nothing else.
func TestRoleHasItsKeysOnly(t *testing.T) {
	t.Parallel()
	all := parse(t, entry("new", 2)+","+entry("old", 1))
	old := parse(t, entry("old", 1))
	r := role(t, all, sealing, macs, verifying)
	if r.Role() != "webhook" || all.Role() != "" {
		t.Errorf("roles: %q and %q", r.Role(), all.Role())
	}
	for _, of := range []*secret.Keys{all, old} {
		sealed, err := of.Seal(sealing.Label, []byte("x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := r.Open(sealing.Label, sealed, nil); err != nil || string(plain) != "x" {
			t.Errorf("the role opens %q, %v", plain, err)
		}
		if !r.VerifyMAC(macs.Label, []byte("d"), of.MAC(macs.Label, []byte("d"))) {
			t.Error("the role refuses a MAC")
		}
		signature, err := of.Sign(signing.Label, []byte("d"))
		if err != nil || !r.VerifySignature(signing.Label, []byte("d"), signature) {
			t.Errorf("the role refuses a signature (%v)", err)
		}
		other, _ := of.Seal("erp credentials", []byte("x"), nil)
		if plain, err := r.Open("erp credentials", other, nil); !errors.Is(err, secret.ErrNotHeld) {
			t.Errorf("another role's secret opens: %q, %v", plain, err)
		}
	}
	if _, err := r.Seal("erp credentials", nil, nil); !errors.Is(err, secret.ErrNotHeld) {
		t.Errorf("Seal with another role's key: %v", err)
	}
	if r.MAC("other", nil) != nil || r.VerifyMAC("other", []byte("d"), all.MAC("other", []byte("d"))) || r.VerifyMAC("other", []byte("d"), nil) {
		t.Error("a MAC of another role")
	}
	if _, err := r.Sign(signing.Label, nil); !errors.Is(err, secret.ErrNotHeld) {
		t.Errorf("a role that verifies signs: %v", err)
	}
	if missing := r.Missing([]secret.Use{sealing, macs, signing, verifying}); fmt.Sprint(missing) != fmt.Sprint([]secret.Use{signing}) {
		t.Errorf("missing: %v", missing)
	}
	if signer := role(t, all, signing); !signer.Holds(verifying) || !signer.Holds(signing) || signer.Holds(sealing) {
		t.Error("what a role that signs holds")
	}
	if formers := r.FormerPermutations(); len(formers) != 0 {
		t.Errorf("%d permutations from the keys of a role", len(formers))
	}
	for _, master := range []byte{1, 2} {
		if bytes.Contains([]byte(r.Reveal()), []byte(strings.TrimPrefix(entry("x", master), "x:"))) {
			t.Error("the keys of a role hold a master key")
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", r, r, r); strings.Contains(text, "=") {
		t.Errorf("printed: %s", text)
	}
	if r.Reveal() != parse(t, r.Reveal()).Reveal() {
		t.Error("the text changes when it is read and written")
	}
}

// A replaced key that leaked opens old values, and what it signs or authenticates is not believed, also
// with the keys of a role.
func TestOpenKeyOfARoleOnlyOpens(t *testing.T) {
	t.Parallel()
	old := parse(t, entry("old", 1))
	r := role(t, parse(t, entry("new", 2)+","+entry("old", 1)+":open"), sealing, macs, signing)
	sealed, _ := old.Seal(sealing.Label, []byte("x"), nil)
	if _, err := r.Open(sealing.Label, sealed, nil); err != nil {
		t.Error(err)
	}
	if _, err := r.OpenCredential(sealing.Label, sealed, nil); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("a cookie of a replaced key: %v", err)
	}
	signature, _ := old.Sign(signing.Label, []byte("d"))
	if r.VerifySignature(signing.Label, []byte("d"), signature) || r.VerifyMAC(macs.Label, []byte("d"), old.MAC(macs.Label, []byte("d"))) {
		t.Error("a replaced key is believed")
	}
}

func TestSignatureBindsLabelDataAndKey(t *testing.T) {
	t.Parallel()
	k := parse(t, entry("new", 2)+","+entry("old", 1))
	signature, err := k.Sign("rows", []byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := k.Sign("rows", []byte("data"))
	if !bytes.Equal(signature, again) || !k.SignedWithNewest(signature) {
		t.Error("the signature of the same data is another one")
	}
	for i := range signature {
		changed := bytes.Clone(signature)
		changed[i] ^= 1
		if k.VerifySignature("rows", []byte("data"), changed) {
			t.Errorf("byte %d may change", i)
		}
	}
	old := parse(t, entry("old", 1))
	if k.VerifySignature("other", []byte("data"), signature) || k.VerifySignature("rows", []byte("date"), signature) ||
		k.VerifySignature("rows", []byte("data"), signature[:40]) || k.VerifySignature("rows", []byte("data"), nil) || old.VerifySignature("rows", []byte("data"), signature) {
		t.Error("a signature of something else is believed")
	}
	early, _ := old.Sign("rows", []byte("data"))
	if !k.VerifySignature("rows", []byte("data"), early) || k.SignedWithNewest(early) {
		t.Error("a signature of the older key")
	}
	var none secret.Keys
	if _, err := none.Sign("rows", nil); !errors.Is(err, secret.ErrKeys) || none.VerifySignature("rows", []byte("data"), signature) {
		t.Error("keys without a key sign or verify")
	}
}

func TestKeysOfARoleAreRefused(t *testing.T) {
	t.Parallel()
	good := parse(t, entry("a", 1)).Subset("webhook", []secret.Use{sealing}).Reveal()
	lines := strings.SplitAfter(good, "\n")
	for name, text := range map[string]string{
		"no role": "quittance keys of \n" + lines[1], "no key": lines[0], "cut": good[:len(good)-30],
		"purpose": strings.Replace(good, " seal ", " open ", 1), "mark": strings.Replace(good, "a seal", "a:shut seal", 1), "newest is open": strings.Replace(good, "a seal", "a:open seal", 1),
		"id": strings.Replace(good, "a seal", "ä seal", 1), "base64": strings.Replace(good, "=", "%", 1),
	} {
		if k, err := secret.ParseKeys(text); !errors.Is(err, secret.ErrRoleKeys) {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
}
