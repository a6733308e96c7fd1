package receipts_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/internal/receipts"
)

// The verdicts of the service, which knows the record, and of somebody without network.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.token(t)
	now := paidAt.Add(time.Hour)
	c, err := receipts.NewClaims(host, "impots", paid(), "")
	if err != nil {
		t.Fatal(err)
	}
	testToken, err := h.test.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	reversedAt := paidAt.Add(24 * time.Hour).Truncate(time.Second)
	other, claims := c, c
	other.Amount++
	euros, elsewhere, renamed := c, c, c
	euros.Currency, elsewhere.PaymentRef, renamed.Agency = "EUR", "1", "finances"
	record := func(r receipts.Record, ok bool) receipts.Records {
		return func(context.Context, string) (receipts.Record, bool, error) { return r, ok, nil }
	}
	revoked := append(receipts.Keys{}, h.keys...)
	revoked[0].RevokedAt = now
	forged := token[:len(token)-6] + "AAAAAA"
	for name, c := range map[string]struct {
		keys    receipts.Keys
		token   string
		records receipts.Records
		want    receipts.Verdict
		at      time.Time
	}{
		"paid":     {h.keys, token, record(receipts.Record{Claims: c, Live: true}, true), receipts.VerdictAuthentic, now},
		"reversed": {h.keys, token, record(receipts.Record{Claims: c, Live: true, ReversedAt: reversedAt}, true), receipts.VerdictReversed, reversedAt},
		"signed with our key by a thief, another amount": {h.keys, token, record(receipts.Record{Claims: other, Live: true}, true), receipts.VerdictDiffers, time.Time{}},
		"another currency":                    {h.keys, token, record(receipts.Record{Claims: euros, Live: true}, true), receipts.VerdictDiffers, time.Time{}},
		"told that it differs":                {h.keys, token, record(receipts.Record{Live: true, Differs: true}, true), receipts.VerdictDiffers, time.Time{}},
		"another reference":                   {h.keys, token, record(receipts.Record{Claims: elsewhere, Live: true}, true), receipts.VerdictDiffers, time.Time{}},
		"the agency's slug was changed":       {h.keys, token, record(receipts.Record{Claims: renamed, Live: true}, true), receipts.VerdictAuthentic, now},
		"signed by a thief":                   {h.keys, token, record(receipts.Record{}, false), receipts.VerdictNone, time.Time{}},
		"live token of a test payment":        {h.keys, token, record(receipts.Record{Claims: c}, true), receipts.VerdictNone, time.Time{}},
		"forged":                              {h.keys, forged, nil, receipts.VerdictNone, time.Time{}},
		"test":                                {h.keys, testToken, record(receipts.Record{Claims: c}, true), receipts.VerdictTest, time.Time{}},
		"test, no record":                     {h.keys, testToken, record(receipts.Record{}, false), receipts.VerdictTest, time.Time{}},
		"test, reversed":                      {h.keys, testToken, record(receipts.Record{Claims: c, ReversedAt: reversedAt}, true), receipts.VerdictTest, reversedAt},
		"revoked key, the record agrees":      {revoked, token, record(receipts.Record{Claims: c, Live: true}, true), receipts.VerdictAuthentic, now},
		"revoked key, the record says other":  {revoked, token, record(receipts.Record{Claims: other, Live: true}, true), receipts.VerdictNone, time.Time{}},
		"revoked key, reversed":               {revoked, token, record(receipts.Record{Claims: c, Live: true, ReversedAt: reversedAt}, true), receipts.VerdictReversed, reversedAt},
		"a text":                              {h.keys, "bonjour", nil, receipts.VerdictNone, time.Time{}},
		"unknown key, and all keys are known": {nil, token, nil, receipts.VerdictNone, time.Time{}},
	} {
		got, err := c.keys.Check(t.Context(), host, c.token, now, c.records)
		if err != nil || got.Verdict != c.want || !got.At.Equal(c.at) || (got.Claims == receipts.Claims{}) != (c.want == receipts.VerdictNone || c.want == receipts.VerdictDiffers) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// A clock that is a year off changes only what the service says of the time of the check.
	for _, clock := range []time.Time{now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0)} {
		for name, c := range map[string]struct {
			keys     receipts.Keys
			token    string
			reversed time.Time
			want     receipts.Verdict
			at       time.Time
		}{
			"paid":        {h.keys, token, time.Time{}, receipts.VerdictAuthentic, clock},
			"reversed":    {h.keys, token, reversedAt, receipts.VerdictReversed, reversedAt},
			"revoked key": {revoked, token, time.Time{}, receipts.VerdictAuthentic, clock},
			"forged":      {h.keys, forged, time.Time{}, receipts.VerdictNone, time.Time{}},
			"test":        {h.keys, testToken, time.Time{}, receipts.VerdictTest, time.Time{}},
		} {
			got, err := c.keys.Check(t.Context(), host, c.token, clock, record(receipts.Record{Claims: claims, Live: true, ReversedAt: c.reversed}, true))
			if err != nil || got.Verdict != c.want || !got.At.Equal(c.at) {
				t.Errorf("%s, the clock is at %s: %+v, %v", name, clock, got, err)
			}
		}
	}
	away := errors.New("away")
	if got, err := h.keys.Check(t.Context(), host, token, now, func(context.Context, string) (receipts.Record, bool, error) { return receipts.Record{}, false, away }); !errors.Is(err, away) {
		t.Errorf("the record is away: %+v, %v", got, err)
	}

	none := func(string) *receipts.Reversals { return nil }
	before := &receipts.Reversals{Issuer: host, At: paidAt.Unix(), Reversed: map[string]int64{}}
	after := &receipts.Reversals{Issuer: host, At: reversedAt.Unix() + 60, Count: 1, Reversed: map[string]int64{c.ID: reversedAt.Unix()}}
	public, err := receipts.ParseJWKS(h.keys.JWKS(now))
	if err != nil {
		t.Fatal(err)
	}
	withoutRevoked, err := receipts.ParseJWKS(revoked.JWKS(now))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		keys  receipts.Keys
		token string
		list  *receipts.Reversals
		want  receipts.Verdict
		at    time.Time
	}{
		"no list":                 {public, token, nil, receipts.VerdictUnconfirmed, time.Time{}},
		"before the list came":    {public, token, before, receipts.VerdictUnconfirmed, paidAt.Truncate(time.Second)},
		"after the list came":     {public, token, after, receipts.VerdictReversed, reversedAt},
		"forged":                  {public, forged, after, receipts.VerdictNone, time.Time{}},
		"test":                    {public, testToken, nil, receipts.VerdictTest, time.Time{}},
		"test, not reversed":      {public, testToken, before, receipts.VerdictTest, time.Time{}},
		"test, reversed":          {public, testToken, after, receipts.VerdictTest, reversedAt},
		"key of tomorrow":         {nil, token, nil, receipts.VerdictUnknownKey, time.Time{}},
		"revoked key, known here": {revoked, token, before, receipts.VerdictUnknownKey, time.Time{}},
		"revoked key, left out":   {withoutRevoked, token, before, receipts.VerdictUnknownKey, time.Time{}},
	} {
		lists := none
		if c.list != nil {
			lists = func(kid string) *receipts.Reversals {
				if (kid != h.keys[0].ID) != strings.HasPrefix(name, "test") {
					t.Errorf("%s: the list of %s", name, kid)
				}
				return c.list
			}
		}
		if got := c.keys.CheckOffline(host, c.token, lists); got.Verdict != c.want || !got.At.Equal(c.at) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A list of reversals is proved by the key of its receipts, and neither a list counts as a
// receipt nor a receipt as a list.
func TestReversals(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	list := receipts.Reversals{Issuer: host, At: paidAt.Unix(), Count: 1, Reversed: map[string]int64{"AZqxwgAAeryN7wEjRWeJqw": paidAt.Unix()}}
	body, err := h.live.SignReversals(list)
	if err != nil {
		t.Fatal(err)
	}
	kid, got, err := h.keys.ReadReversals(host, body)
	if err != nil || kid != h.keys[0].ID || got.Count != 1 || got.At != list.At || got.Reversed["AZqxwgAAeryN7wEjRWeJqw"] == 0 {
		t.Errorf("%s %+v, %v", kid, got, err)
	}
	text := string(body)
	for name, c := range map[string]struct {
		issuer, body string
		want         error
	}{
		"another service": {"ailleurs.example.cg", text, receipts.ErrReversals},
		"cut":             {host, text[:len(text)-8] + `"}`, receipts.ErrReversals},
		"no JSON":         {host, "x", receipts.ErrReversals},
		"another payload": {host, strings.Replace(text, `"payload":"ey`, `"payload":"eX`, 1), receipts.ErrReversals},
		"a receipt": {host, func() string {
			p := strings.Split(h.token(t), ".")
			return `{"payload":"` + p[1] + `","protected":"` + p[0] + `","signature":"` + p[2] + `"}`
		}(), receipts.ErrReversals},
	} {
		if _, got, err := h.keys.ReadReversals(c.issuer, []byte(c.body)); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, _, err := h.keys[1:].ReadReversals(host, body); !errors.Is(err, receipts.ErrUnknownKey) {
		t.Errorf("an unknown key: %v", err)
	}
	field := func(name string) string {
		_, rest, _ := strings.Cut(text, `"`+name+`":"`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	if got, err := h.keys.Verify(host, field("protected")+"."+field("payload")+"."+field("signature")); !errors.Is(err, receipts.ErrForged) {
		t.Errorf("a list as a receipt: %+v, %v", got, err)
	}
	if again, err := h.live.SignReversals(list); err != nil || !bytes.Equal(again, body) {
		t.Error("the same list has other bytes")
	}
}

// The digest of a payment says the version of its token, and no two payments have one.
func TestPaymentDigest(t *testing.T) {
	t.Parallel()
	c := receipts.Claims{Version: 2, ID: "AZqxwgAAeryN7wEjRWeJqw", Amount: 5000, Fee: 100, Currency: "XAF", PaymentRef: "4821903344556672", NoticeRef: "AV1"}
	if got, want := c.PaymentDigest(), "FC3IJZZMnDmZY0i6qlsPILNZ7YDkThktqt26Q9UWvek"; got != want {
		t.Errorf("the digest is %s, want %s, as the script of the page makes it", got, want)
	}
	first := c
	first.Version, first.Fee = 1, 0 // a paper of the first release says no fee
	if !c.HasPayment(c.PaymentDigest()) || !c.HasPayment(first.PaymentDigest()) || c.HasPayment("") {
		t.Error("the record does not know its own payment")
	}
	for name, change := range map[string]func(*receipts.Claims){
		"amount": func(c *receipts.Claims) { c.Amount++ }, "fee": func(c *receipts.Claims) { c.Fee = 0 }, "currency": func(c *receipts.Claims) { c.Currency = "EUR" },
		"id": func(c *receipts.Claims) { c.ID = "AZqxwgAAeryN7wEjRWeJqA" }, "reference": func(c *receipts.Claims) { c.PaymentRef += "1" }, "notice": func(c *receipts.Claims) { c.NoticeRef = "AV2" },
		"a reference that has the notice": func(c *receipts.Claims) { c.PaymentRef, c.NoticeRef = c.PaymentRef+",3:AV1", "" },
		"version":                         func(c *receipts.Claims) { c.Version = 3 },
	} {
		other := c
		change(&other)
		if c.HasPayment(other.PaymentDigest()) {
			t.Errorf("another %s has the same digest", name)
		}
	}
}
