package receipts_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"quittance/checkout"
	"quittance/internal/receipts"
)

const host = "paiement.example.cg"

var paidAt = time.Date(2026, 11, 23, 9, 30, 15, 400, time.UTC)

// paid is a completed session of the portal with one due.
func paid() checkout.Session {
	return checkout.Session{
		ID: "chs_1", TenantID: "018f0000-0000-7000-8000-000000000001", Live: true, Amount: 250_000, Currency: "XAF", CitizenID: "1",
		Status: checkout.StatusCompleted, EndedAt: paidAt, PaymentRef: "4821903344556672",
		Items: []checkout.Item{{
			ERPDueRef: "D-1", SubjectRef: "NIU-2026-00004711", ServiceLabel: "Contribution foncière des propriétés bâties", Amount: 250_000, Outstanding: 500_000,
			TransactionID: "019ab1c2-0000-7abc-8def-0123456789ab", NoticeRef: "AV20260000012345",
		}},
		Collection: &checkout.Collection{OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Status: checkout.CollectionApproved, Amount: 252_500, Fee: 2_500, OperatorRef: "23503452", DecidedAt: paidAt},
	}
}

// house is an installation with a live and a test key that were made from a fixed seed.
type house struct {
	keys       receipts.Keys
	live, test *receipts.Signer
}

func newHouse(t *testing.T) (h house) {
	t.Helper()
	signer := func(live bool, seed byte) *receipts.Signer {
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
		k, err := receipts.NewKey(live, private.Public().(ed25519.PublicKey), paidAt.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		h.keys = append(h.keys, k)
		s, err := receipts.NewSigner(k, private)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h.live, h.test = signer(true, 1), signer(false, 2)
	return h
}

func (h house) token(t *testing.T) string {
	t.Helper()
	c, err := receipts.NewClaims(host, "impots", paid(), paid().Items[0].TransactionID)
	if err != nil {
		t.Fatal(err)
	}
	token, err := h.live.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// The bytes of a token never change: papers that were printed years ago are verified.
func TestToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.token(t)
	decode := func(part string) string {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	parts := strings.Split(token, ".")
	if got, want := decode(parts[0]), `{"alg":"EdDSA","kid":"live-`+strings.TrimPrefix(h.keys[0].ID, "live-")+`","typ":"quittance+jwt"}`; got != want {
		t.Errorf("header is %s, want %s", got, want)
	}
	want := `{"v":2,"iss":"paiement.example.cg","jti":"AZqxwgAAeryN7wEjRWeJqw","iat":1795426215,"pd":1795426215,"n":"AV20260000012345","pr":"4821903344556672","t":"impots","s":"Contribution foncière des propriétés bâ…","a":250000,"c":"XAF","ch":"MOBILE_MONEY","sr":"4711","pt":1}`
	if got := decode(parts[1]); got != want {
		t.Errorf("claims are\n%s, want\n%s", got, want)
	}
	if h.token(t) != token {
		t.Error("the same payment has another token")
	}
	got, err := h.keys.Verify(host, " "+receipts.Address("https://"+host, token)+"\n")
	if err != nil || got.Test() || got.Revoked() || got.Claims.Amount != 250_000 || !got.Claims.Paid().Equal(paidAt.Truncate(time.Second)) {
		t.Errorf("verified: %+v, %v", got, err)
	}
	if id, ok := got.Claims.TransactionID(); !ok || id != paid().Items[0].TransactionID {
		t.Errorf("transaction %s", id)
	}
	if n := len(token); n < 400 || n > 560 {
		t.Errorf("the token has %d characters", n)
	}
	t.Logf("%d characters in the address, kid %s", len(receipts.Address("https://"+host, token)), h.keys[0].ID)
}

// go-jose reads the key set and verifies our tokens, and we verify its tokens.
func TestAnotherLibrary(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.token(t)
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(h.keys.JWKS(paidAt), &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	found := set.Key(parsed.Signatures[0].Header.KeyID)
	if len(found) != 1 || !found[0].Valid() || found[0].Use != "sig" {
		t.Fatalf("keys with the kid: %+v", found)
	}
	claims, err := parsed.Verify(found[0])
	if err != nil || !bytes.Contains(claims, []byte(`"n":"AV20260000012345"`)) {
		t.Errorf("go-jose: %s, %v", claims, err)
	}
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: h.keys[0].ID}}, (&jose.SignerOptions{}).WithType("quittance+jwt"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := signed.CompactSerialize()
	if err != nil || theirs != token {
		t.Errorf("go-jose signs %s, %v, want %s", theirs, err, token)
	}
	// The kid has the thumbprint that the library computes.
	thumbprint, err := found[0].Thumbprint(crypto.SHA256)
	if err != nil || "live-"+base64.RawURLEncoding.EncodeToString(thumbprint[:6]) != h.keys[0].ID {
		t.Errorf("thumbprint %x, %v, kid %s", thumbprint, err, h.keys[0].ID)
	}
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// Everything that somebody without the key can make is refused, and the reason is the one
// that the verifying page shows.
func TestForgeries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.token(t)
	parts := strings.Split(token, ".")
	live, testKey := h.keys[0], h.keys[1]
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	head := func(text string) string { return encode(text) + "." + parts[1] + "." + parts[2] }
	mac := func(key []byte, header string) string {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(encode(header) + "." + parts[1]))
		return encode(header) + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	kid := live.ID
	_, stranger, _ := ed25519.GenerateKey(nil)
	signedBy := func(private ed25519.PrivateKey, header, body string) string {
		text := encode(header) + "." + encode(body)
		return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(text)))
	}
	header := `{"alg":"EdDSA","kid":"` + kid + `","typ":"quittance+jwt"}`
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	// A test receipt under the kid of the live key.
	testClaims, err := receipts.NewClaims(host, "impots", paid(), "")
	if err != nil {
		t.Fatal(err)
	}
	testToken, err := h.test.Sign(testClaims)
	if err != nil {
		t.Fatal(err)
	}
	swapped := parts[0] + "." + strings.SplitN(testToken, ".", 2)[1]
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"another amount":           {parts[0] + "." + encode(strings.Replace(string(claims), `"a":250000`, `"a":950000`, 1)) + "." + parts[2], receipts.ErrForged},
		"another signature":        {signedBy(stranger, header, string(claims)), receipts.ErrForged},
		"signature cut":            {token[:len(token)-4], receipts.ErrForged},
		"unused bits set":          {token[:len(token)-1] + "B", receipts.ErrForged},
		"no signature":             {parts[0] + "." + parts[1] + ".", receipts.ErrForged},
		"alg none":                 {encode(`{"alg":"none","kid":"`+kid+`","typ":"quittance+jwt"}`) + "." + parts[1] + ".", receipts.ErrForged},
		"alg None":                 {head(`{"alg":"None","kid":"` + kid + `","typ":"quittance+jwt"}`), receipts.ErrForged},
		"alg HS256, public key":    {mac(live.Public, `{"alg":"HS256","kid":"`+kid+`","typ":"quittance+jwt"}`), receipts.ErrForged},
		"alg EdDSA, public MAC":    {mac(live.Public, header), receipts.ErrForged},
		"alg HS256, no kid":        {mac(live.Public, `{"alg":"HS256","typ":"quittance+jwt"}`), receipts.ErrNotOurs},
		"a test receipt as a live": {swapped, receipts.ErrForged},
		"kid swapped to test":      {head(`{"alg":"EdDSA","kid":"` + testKey.ID + `","typ":"quittance+jwt"}`), receipts.ErrForged},
		"kid unknown":              {head(`{"alg":"EdDSA","kid":"live-AAAAAAAA","typ":"quittance+jwt"}`), receipts.ErrUnknownKey},
		"kid unknown, alg none":    {head(`{"alg":"none","kid":"live-AAAAAAAA","typ":"quittance+jwt"}`), receipts.ErrNotOurs},
		"kid twice":                {head(`{"alg":"EdDSA","kid":"x","kid":"` + kid + `","typ":"quittance+jwt"}`), receipts.ErrForged},
		"key in the header":        {signedBy(stranger, `{"alg":"EdDSA","jwk":{"kty":"OKP"},"kid":"`+kid+`","typ":"quittance+jwt"}`, string(claims)), receipts.ErrForged},
		"crit":                     {signedBy(private, `{"alg":"EdDSA","b64":false,"crit":["b64"],"kid":"`+kid+`","typ":"quittance+jwt"}`, string(claims)), receipts.ErrForged},
		"typ JWT":                  {signedBy(private, `{"alg":"EdDSA","kid":"`+kid+`","typ":"JWT"}`, string(claims)), receipts.ErrForged},
		"header with a space":      {signedBy(private, `{"alg":"EdDSA", "kid":"`+kid+`","typ":"quittance+jwt"}`, string(claims)), receipts.ErrForged},
		"another service":          {signedBy(private, header, strings.Replace(string(claims), host, "ailleurs.example.cg", 1)), receipts.ErrNotOurs},
		"later version":            {signedBy(private, header, strings.Replace(string(claims), `"v":2`, `"v":3`, 1)), receipts.ErrVersion},
		"claims that are no JSON":  {signedBy(private, header, "x"), receipts.ErrForged},
		"version 0":                {signedBy(private, header, strings.Replace(string(claims), `"v":2`, `"v":0`, 1)), receipts.ErrVersion},
		"two times in version 1":   {signedBy(private, header, strings.Replace(strings.Replace(string(claims), `"v":2`, `"v":1`, 1), `"pd":1795426215`, `"pd":1795426214`, 1)), receipts.ErrForged},
		"paid long after its iat":  {signedBy(private, header, strings.Replace(string(claims), `"pd":1795426215`, `"pd":1795526215`, 1)), receipts.ErrForged},
		"paid before, iat too":     {signedBy(private, header, strings.Replace(string(claims), `"iat":1795426215`, `"iat":1595426215`, 1)), receipts.ErrForged},
		"before the key signed":    {signedBy(private, header, strings.ReplaceAll(string(claims), "1795426215", "1595426215")), receipts.ErrForged},
		"padding":                  {token + "==", receipts.ErrForged},
		"empty":                    {"", receipts.ErrNotOurs},
		"four parts":               {token + ".x", receipts.ErrNotOurs},
		"a line break":             {parts[0] + ".\n" + parts[1] + "." + parts[2], receipts.ErrForged},
		"a megabyte":               {strings.Repeat("a", 1<<20) + "." + parts[1] + "." + parts[2], receipts.ErrNotOurs},
		"a web address":            {"https://example.org/", receipts.ErrNotOurs},
	} {
		if got, err := h.keys.Verify(host, c.token); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
	if got, err := receipts.Keys(nil).Verify(host, token); !errors.Is(err, receipts.ErrUnknownKey) {
		t.Errorf("without keys: %+v, %v", got, err)
	}
}

// Another token of the same key is another receipt: no claim can be moved between tokens.
// A test receipt is one by its key, whatever it says.
func TestTestReceipt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c, err := receipts.NewClaims(host, "impots", paid(), "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := h.test.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.keys.Verify(host, token)
	if err != nil || !got.Test() || !strings.HasPrefix(got.Key.ID, "test-") {
		t.Errorf("a test receipt: %+v, %v", got, err)
	}
	for _, live := range []bool{true, false} {
		k, err := h.keys.Signing(live, paidAt)
		if err != nil || k.Live != live {
			t.Errorf("key of live %v: %+v, %v", live, k, err)
		}
	}
	// A key set that calls the test key a live one is refused: the kid does not fit.
	lie := bytes.ReplaceAll(h.keys.JWKS(paidAt), []byte(`"mode":"test"`), []byte(`"mode":"live"`))
	if _, err := receipts.ParseJWKS(lie); err == nil {
		t.Error("a test key was taken for a live one")
	}
}

// After a rotation the old key stays known, and signs the payments of its time as before.
// After it is revoked its tokens count only if every claim agrees with the record.
func TestRotationAndRevocation(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.token(t)
	rotated := paidAt.Add(24 * time.Hour)
	next, err := receipts.NewKey(true, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, 32)).Public().(ed25519.PublicKey), rotated)
	if err != nil {
		t.Fatal(err)
	}
	h.keys[0].Until = rotated
	h.keys = append(h.keys, next)
	for at, want := range map[time.Time]string{
		paidAt: h.keys[0].ID, rotated.Add(-time.Second): h.keys[0].ID, rotated: next.ID, rotated.Add(20 * 365 * 24 * time.Hour): next.ID,
	} {
		if k, err := h.keys.Signing(true, at); err != nil || k.ID != want {
			t.Errorf("at %s: %s, %v, want %s", at, k.ID, err, want)
		}
	}
	if _, err := h.keys.Signing(true, paidAt.Add(-2*time.Hour)); !errors.Is(err, receipts.ErrNoKey) {
		t.Errorf("before the first key: %v", err)
	}
	if got, err := h.keys.Verify(host, token); err != nil || got.Revoked() {
		t.Errorf("after the rotation: %+v, %v", got, err)
	}
	// The thief of the retired key signs a payment of today.
	c, _ := receipts.NewClaims(host, "impots", paid(), "")
	late := c
	late.PaidAt, late.IssuedAt = rotated.Unix()+60, rotated.Unix()+60
	stolen, err := h.live.Sign(late)
	if err != nil { // the signer has the key as it was before the rotation
		t.Fatal(err)
	}
	if got, err := h.keys.Verify(host, stolen); !errors.Is(err, receipts.ErrForged) {
		t.Errorf("a retired key signed: %+v, %v", got, err)
	}
	h.keys[0].RevokedAt = rotated.Add(time.Hour)
	got, err := h.keys.Verify(host, token)
	if err != nil || !got.Revoked() || !got.Claims.Agrees(c) {
		t.Errorf("after the revocation: %+v, %v", got, err)
	}
	other := c
	other.Amount++
	if got.Claims.Agrees(other) {
		t.Error("another amount agrees")
	}
	erased := c
	erased.Subject = ""
	if !got.Claims.Agrees(erased) {
		t.Error("the claims do not agree with an erased record")
	}
	// The key set survives a file, and shows keys 30 days before they sign, not earlier. The
	// revoked key is not in it.
	back, err := receipts.ParseJWKS(h.keys.JWKS(rotated.Add(-receipts.AnnouncedFor)))
	if err != nil || len(back) != 2 {
		t.Fatalf("%+v, %v", back, err)
	}
	if got, err := back.Verify(host, token); !errors.Is(err, receipts.ErrUnknownKey) {
		t.Errorf("with the key set: %+v, %v", got, err)
	}
	if early, err := receipts.ParseJWKS(h.keys.JWKS(rotated.Add(-receipts.AnnouncedFor - time.Second))); err != nil || len(early) != 1 {
		t.Errorf("announced too early: %+v, %v", early, err)
	}
}

// What is not paid has no token.
func TestUnpaid(t *testing.T) {
	t.Parallel()
	open := paid()
	open.Status = checkout.StatusOpen
	if _, err := receipts.NewClaims(host, "impots", open, ""); !errors.Is(err, receipts.ErrUnpaid) {
		t.Errorf("open: %v", err)
	}
	if _, err := receipts.NewClaims(host, "impots", paid(), "019ab1c2-0000-7abc-8def-000000000000"); !errors.Is(err, receipts.ErrUnpaid) {
		t.Errorf("another due: %v", err)
	}
	// A late payment was paid when it was known, not when the session ended.
	late := paid()
	late.Late, late.Collection.DecidedAt = true, paidAt.Add(time.Hour)
	if c, err := receipts.NewClaims(host, "impots", late, ""); err != nil || !c.Paid().Equal(paidAt.Add(time.Hour).Truncate(time.Second)) {
		t.Errorf("late: %+v, %v", c, err)
	}
}

// The largest token still fits the QR code that papers have room for.
func TestLargestToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := paid()
	s.Items[0].ServiceLabel = strings.Repeat("é", 200)
	s.Items[0].Amount, s.Items[0].Outstanding = 1<<53-1, 1<<53
	c, err := receipts.NewClaims("paiement.finances.gouv.cg", "direction-generale-des-impots", s, "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := h.live.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(receipts.Address("https://paiement.finances.gouv.cg", token)); n > 711 { // version 21 at level M
		t.Errorf("%d characters", n)
	}
}

// An operator dates its approval in the month before the service learned of it, when another key
// signed. The receipt says the operator's date, and the key of the time at which it was issued signs.
func TestPaidBeforeItWasKnown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := paid()
	approved := paidAt.Add(-48 * time.Hour) // before the first key
	s.Late, s.Collection.RequestedAt, s.Collection.ApprovedAt = true, paidAt.Add(-49*time.Hour), approved
	s.CitizenID, s.OrderID, s.Items[0].Fee = "", "DOS-2026-17", 2_500
	c, err := receipts.NewClaims(host, "impots", s, "")
	if err != nil || !c.Paid().Equal(approved.Truncate(time.Second)) || !c.Issued().Equal(paidAt.Truncate(time.Second)) || c.Fee != 2_500 {
		t.Fatalf("%+v, %v", c, err)
	}
	token, err := h.live.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.keys.Verify(host, token)
	if err != nil || got.Claims != c {
		t.Errorf("%+v, %v, want %+v", got.Claims, err, c)
	}
	if c.Order != receipts.OrderHash(c.ID, "DOS-2026-17") || c.Order == receipts.OrderHash(c.ID, "DOS-2026-18") || strings.Contains(token, "DOS") {
		t.Errorf("the dossier number: %q", c.Order)
	}
}

// A receipt that an earlier release printed has one time and neither fee nor dossier number. It stays
// valid, and agrees with the record after its key was revoked; another amount does not.
func TestPrintedVersion1(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const printed = `{"v":1,"iss":"paiement.example.cg","jti":"AZqxwgAAeryN7wEjRWeJqw","iat":1795426215,"pd":1795426215,"n":"AV20260000012345","pr":"4821903344556672","t":"impots","s":"Contribution foncière des propriétés bâ…","a":250000,"c":"XAF","ch":"MOBILE_MONEY","sr":"4711","pt":1}`
	text := encode(`{"alg":"EdDSA","kid":"`+h.keys[0].ID+`","typ":"quittance+jwt"}`) + "." + encode(printed)
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	got, err := h.keys.Verify(host, text+"."+base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(text))))
	if err != nil {
		t.Fatal(err)
	}
	s := paid()
	s.Collection.RequestedAt, s.Collection.ApprovedAt, s.Items[0].Fee = paidAt.Add(-time.Hour), paidAt.Add(-time.Minute), 2_500
	record, err := receipts.NewClaims(host, "impots", s, "")
	if err != nil || !got.Claims.Agrees(record) {
		t.Errorf("%+v does not agree with %+v, %v", got.Claims, record, err)
	}
	s.Items[0].Amount++
	if record, err = receipts.NewClaims(host, "impots", s, ""); err != nil || got.Claims.Agrees(record) {
		t.Errorf("%+v agrees with %+v, %v", got.Claims, record, err)
	}
}
