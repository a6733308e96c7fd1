package connector_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"quittance/internal/connector"
	"quittance/internal/secret"
)

func TestCallbackURL(t *testing.T) {
	t.Parallel()
	keys := secret.GenerateKeys()
	address := connector.CallbackURL(keys, "https://pay.example/", "mtn", "chs_a", "c1")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(u.Path, "/")
	if !strings.HasPrefix(address, "https://pay.example/callbacks/mtn/chs_a/c1/") || len(parts) != 6 {
		t.Fatalf("address %s", address)
	}
	mac := parts[5]
	if !connector.VerifyCallback(keys, "mtn", "chs_a", "c1", mac) {
		t.Error("its own address is not accepted")
	}
	for name, ok := range map[string]bool{
		"other session":    connector.VerifyCallback(keys, "mtn", "chs_b", "c1", mac),
		"other collection": connector.VerifyCallback(keys, "mtn", "chs_a", "c2", mac),
		"other key":        connector.VerifyCallback(secret.GenerateKeys(), "mtn", "chs_a", "c1", mac),
		"other operator":   connector.VerifyCallback(keys, "card", "chs_a", "c1", mac),
		"no MAC":           connector.VerifyCallback(keys, "mtn", "chs_a", "c1", ""),
		"shifted border":   connector.VerifyCallback(keys, "mtn", "chs_", "ac1", mac),
		"padded":           connector.VerifyCallback(keys, "mtn", "chs_a", "c1", mac+"="),
	} {
		if ok {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestUncertain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("what is this"), true},
		{connector.NetworkError("calling", false, context.DeadlineExceeded), false},
		{fmt.Errorf("again: %w", connector.NetworkError("calling", true, context.DeadlineExceeded)), true},
	} {
		if got := connector.Uncertain(c.err); got != c.want {
			t.Errorf("Uncertain(%v) = %v", c.err, got)
		}
	}
	err := connector.NetworkError("calling", true, &url.Error{Op: "Get", URL: "https://operator.example/hush", Err: context.DeadlineExceeded})
	if err.Fault != connector.FaultTimeout || strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v", err)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var v struct{ Status, Message string }
	for name, decode := range map[string]func([]byte, any) error{"object": connector.DecodeObject, "report": connector.DecodeReport} {
		if err := decode([]byte("{\"status\":\"TS\",\"message\":\"re\xe7u\"}"), &v); err != nil || v.Status != "TS" {
			t.Errorf("%s: prose in another encoding costs the decision: %+v, %v", name, v, err)
		}
		for _, body := range []string{"", "[]", "{}{}", `{"status":1}`} {
			if err := decode([]byte(body), &v); !errors.Is(err, connector.ErrNotObject) {
				t.Errorf("%s: %s: %v", name, body, err)
			}
		}
	}
	for _, body := range []string{`{"status":"TS","status":"TF"}`, `{"x":[{"status":"TS","status":"TF"}]}`} {
		if err := connector.DecodeReport([]byte(body), &v); !errors.Is(err, connector.ErrNotObject) {
			t.Errorf("report: %s: %v", body, err)
		}
		if err := connector.DecodeObject([]byte(body), &v); err != nil {
			t.Errorf("answer: %s: %v", body, err)
		}
	}
}
