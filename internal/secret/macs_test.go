package secret_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/internal/secret"
)

// MACs makes and accepts what Keys.MAC and Keys.VerifyMAC do, with every list of keys.
func TestMACsAreThoseOfTheKeys(t *testing.T) {
	t.Parallel()
	first, second := secret.GenerateKeys(), secret.GenerateKeys()
	both, err := secret.ParseKeys(second.Reveal() + "," + first.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	retired, err := secret.ParseKeys(second.Reveal() + "," + first.Reveal() + ":open")
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("a command")
	for name, made := range map[string]struct {
		by, verifies *secret.Keys
		ok           bool
	}{
		"the same key":   {first, first, true},
		"an older key":   {first, both, true},
		"a newer key":    {both, first, false},
		"a retired key":  {first, retired, false},
		"another key":    {first, second, false},
		"the newest key": {both, retired, true},
		"keys of a role": {both, both.Subset("x", []secret.Use{{Purpose: secret.PurposeMAC, Label: "l"}}), true},
	} {
		makes, err := made.by.MACs("l")
		if err != nil {
			t.Fatal(err)
		}
		verifies, err := made.verifies.MACs("l")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second use has a state from the pool
			mac := makes.Append(nil, data)
			if string(mac) != string(made.by.MAC("l", data)) {
				t.Errorf("%s: not the MAC of Keys", name)
			}
			if got := verifies.Verify(data, mac); got != made.ok || got != made.verifies.VerifyMAC("l", data, mac) {
				t.Errorf("%s: verified %v", name, got)
			}
			if verifies.Verify([]byte("another"), mac) || verifies.Verify(data, mac[:10]) || verifies.Verify(data, nil) {
				t.Errorf("%s: a wrong MAC passed", name)
			}
		}
	}
	if _, err := both.Subset("x", nil).MACs("l"); !errors.Is(err, secret.ErrNotHeld) {
		t.Errorf("without the key: %v", err)
	}
	if _, err := (*secret.Keys)(nil).MACs("l"); !errors.Is(err, secret.ErrNotHeld) {
		t.Errorf("without keys: %v", err)
	}
	makes, _ := both.MACs("l")
	if text := fmt.Sprintf("%v %+v %s %d", makes, makes, makes, makes); strings.ContainsAny(text, "0123456789") {
		t.Errorf("prints %q", text)
	}
}
