package connector_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"quittance/internal/connector"
	"quittance/internal/secret"
)

var page = connector.Redirect{URL: "https://acquirer.example/hush?token=hush", TransactionID: "hush-991", ClientToken: "hush", Environment: "live"}

// A sealed redirect opens for its own session and collection, under its own keys.
func TestSealedRedirect(t *testing.T) {
	t.Parallel()
	keys := secret.GenerateKeys()
	sealed, err := connector.SealRedirect(keys, "chs_a", "c1", page)
	if err != nil || bytes.Contains(sealed, []byte("hush")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	if got, err := connector.OpenRedirect(keys, "chs_a", "c1", sealed); err != nil || got != page {
		t.Errorf("%#v, %v", got, err)
	}
	again, err := connector.SealRedirect(keys, "chs_a", "c1", page)
	if err != nil || bytes.Equal(again, sealed) {
		t.Errorf("sealed twice the same: %v", err)
	}
	torn := bytes.Clone(sealed)
	torn[len(torn)-1] ^= 1
	for name, open := range map[string]func() (connector.Redirect, error){
		"another session":    func() (connector.Redirect, error) { return connector.OpenRedirect(keys, "chs_b", "c1", sealed) },
		"another collection": func() (connector.Redirect, error) { return connector.OpenRedirect(keys, "chs_a", "c2", sealed) },
		"a shifted border":   func() (connector.Redirect, error) { return connector.OpenRedirect(keys, "chs_", "ac1", sealed) },
		"another key": func() (connector.Redirect, error) {
			return connector.OpenRedirect(secret.GenerateKeys(), "chs_a", "c1", sealed)
		},
		"a changed byte": func() (connector.Redirect, error) { return connector.OpenRedirect(keys, "chs_a", "c1", torn) },
		"nothing":        func() (connector.Redirect, error) { return connector.OpenRedirect(keys, "chs_a", "c1", nil) },
	} {
		if got, err := open(); err == nil || got != (connector.Redirect{}) {
			t.Errorf("%s opens it: %v", name, err)
		}
	}
}

func TestRedirectKeepsItself(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := connector.Outcome{Redirect: &page}
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "redirect", page, "pointer", &page, "outcome", o)
	for _, text := range []string{
		log.String(), fmt.Sprint(page, &page, o), fmt.Sprintf("%+v %#v %s %q", page, page, page, page), fmt.Sprintf("%+v %#v", &page, &page),
	} {
		if strings.Contains(text, "hush") {
			t.Errorf("prints %s", text)
		}
	}
}
