package connector_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/internal/connector"
	"quittance/internal/secret"
)

func TestCongoPayer(t *testing.T) {
	t.Parallel()
	const want = "242066000001"
	for _, input := range []string{
		"06 600 00 01", "066000001", "06-600-00-01", "06.600.00.01", "(06) 600 00 01", " 06 600 00 01 ", "06\u00a0600\u202f00\u00a001",
		"+242 06 600 00 01", "+242066000001", "242066000001", "00242066000001", "00 242 06 600 00 01",
		"+24266000001", // as the deprecated surface writes it, without the 0
		"24266000001",
	} {
		if got, err := connector.CongoPayer(input, "06"); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %s", input, got, err, want)
		}
	}
	for _, input := range []string{
		"", "0", "06", "06 600 00 0", "06 600 00 011", "66000001", "+33 6 12 34 56 78", "+243 066000001", "0033612345678",
		"06 600 00 0x", "０６６０００００１", "+242 +066000001", "000000000", "006600001", "+242", strings.Repeat("0", 5000), "\x00",
	} {
		if got, err := connector.CongoPayer(input, "06"); !errors.Is(err, connector.ErrPayerMalformed) {
			t.Errorf("%q: %q, %v, want ErrPayerMalformed", input, got, err)
		}
	}
	for _, input := range []string{"05 500 00 01", "+242 04 400 00 01", "22 281 00 00"} {
		if got, err := connector.CongoPayer(input, "06"); err == nil {
			t.Errorf("%q: %q, want an error", input, got)
		}
	}
	if _, err := connector.CongoPayer("05 500 00 01", "06"); !errors.Is(err, connector.ErrPayerElsewhere) || strings.Contains(err.Error(), "5500") {
		t.Errorf("error %v", err)
	}
}

func TestCongoPayerIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got, err := connector.CongoPayer(rapid.String().Draw(t, "input"), "06")
		if err != nil {
			return
		}
		if again, err := connector.CongoPayer(got, "06"); err != nil || again != got || len(got) != 12 {
			t.Fatalf("%q again: %q, %v", got, again, err)
		}
	})
}

func TestMask(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"242066000001": "+242\u00a006\u00a0•••\u00a0••\u00a001", "06 600 00 01": "+242\u00a006\u00a0•••\u00a0••\u00a001",
		"": "•••", "12345": "•••", "+33612345678": "•••",
	} {
		if got := connector.Mask(in); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}

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
