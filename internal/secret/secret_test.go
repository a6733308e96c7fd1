package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"quittance/internal/secret"
)

func entry(id string, fill byte) string {
	return id + ":" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, secret.KeySize))
}

func parse(t *testing.T, list string) *secret.Keys {
	t.Helper()
	k, err := secret.ParseKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseKeysRefuses(t *testing.T) {
	t.Parallel()
	good := entry("a", 1)
	for _, list := range []string{
		"", ":", "a:", "a", good + ",", good + "," + entry("a", 2), entry("b c", 1), entry("", 1),
		"a:" + base64.StdEncoding.EncodeToString(make([]byte, 31)), "a:%%%", entry(strings.Repeat("x", 33), 1),
	} {
		k, err := secret.ParseKeys(list)
		if !errors.Is(err, secret.ErrKeys) {
			t.Errorf("ParseKeys(%q) = %v, %v; want ErrKeys", list, k, err)
		}
		if err != nil && strings.Contains(err.Error(), "AQEB") {
			t.Errorf("the error shows key material: %v", err)
		}
	}
}

func TestGeneratedKeysAreKept(t *testing.T) {
	t.Parallel()
	k := secret.GenerateKeys()
	sealed, err := k.Seal("x", []byte("hello"), nil)
	if err != nil {
		t.Fatal(err)
	}
	again := parse(t, k.Reveal())
	if plain, err := again.Open("x", sealed, nil); err != nil || string(plain) != "hello" {
		t.Errorf("Open = %q, %v", plain, err)
	}
	if k.Reveal() == secret.GenerateKeys().Reveal() {
		t.Error("two generated lists are equal")
	}
}

func TestSealBindsLabelDataAndKey(t *testing.T) {
	t.Parallel()
	k := parse(t, entry("new", 2)+","+entry("old", 1))
	old := parse(t, entry("old", 1))
	sealed, err := old.Seal("webhooks", []byte("plain text"), []byte("row 1"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("plain")) {
		t.Error("ciphertext shows the plaintext")
	}
	if plain, err := k.Open("webhooks", sealed, []byte("row 1")); err != nil || string(plain) != "plain text" {
		t.Errorf("after rotation Open = %q, %v", plain, err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"label": func() ([]byte, error) { return k.Open("callbacks", sealed, []byte("row 1")) },
		"data":  func() ([]byte, error) { return k.Open("webhooks", sealed, []byte("row 2")) },
		"bit": func() ([]byte, error) {
			changed := bytes.Clone(sealed)
			changed[len(changed)-1] ^= 1
			return k.Open("webhooks", changed, []byte("row 1"))
		},
		"cut":   func() ([]byte, error) { return k.Open("webhooks", sealed[:6], []byte("row 1")) },
		"empty": func() ([]byte, error) { return k.Open("webhooks", nil, []byte("row 1")) },
	} {
		if plain, err := open(); !errors.Is(err, secret.ErrSealed) {
			t.Errorf("other %s: Open = %q, %v; want ErrSealed", name, plain, err)
		}
	}
	renewed, err := k.Seal("webhooks", []byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Open("webhooks", renewed, nil); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("without the newest key Open = %v, want ErrUnknownKey", err)
	}
	twice, _ := k.Seal("webhooks", []byte("x"), nil)
	if bytes.Equal(twice, renewed) {
		t.Error("two ciphertexts of one text are equal")
	}
}

func TestMACOverRotation(t *testing.T) {
	t.Parallel()
	k := parse(t, entry("new", 2)+","+entry("old", 1))
	old := parse(t, entry("old", 1))
	mac := old.MAC("callbacks", []byte("data"))
	if !k.VerifyMAC("callbacks", []byte("data"), mac) {
		t.Error("a MAC of the older key is refused")
	}
	if old.VerifyMAC("callbacks", []byte("data"), k.MAC("callbacks", []byte("data"))) {
		t.Error("a MAC of an unknown key is taken")
	}
	if k.VerifyMAC("other", []byte("data"), mac) || k.VerifyMAC("callbacks", []byte("date"), mac) ||
		k.VerifyMAC("callbacks", []byte("data"), mac[:31]) || k.VerifyMAC("callbacks", []byte("data"), nil) {
		t.Error("a MAC of something else is taken")
	}
	var none secret.Keys
	if none.VerifyMAC("callbacks", []byte("data"), none.MAC("callbacks", []byte("data"))) {
		t.Error("without keys a MAC is taken")
	}
}

// An installation that has made references with the permutation of a master key carries it
// over, so that none is made again, and needs the master key no more. The test pins the
// bytes, because another derivation makes another permutation.
func TestPermutationIsCarriedOver(t *testing.T) {
	t.Parallel()
	k := parse(t, entry("new", 2)+","+entry("old", 1))
	former := k.FormerPermutations()
	const golden = "ff984e88966433f5b758321ee9d3374ce5f5dfe00e303188156a482c95f76fd7" // of an earlier release
	if len(former) != 2 || hex.EncodeToString(former[0]) != golden {
		t.Errorf("former permutations %x, want %s first", former, golden)
	}
	own, err := secret.ParseReferenceKey(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, secret.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	const goldenOwn = "f58129d30e9340a3a68f5cb734217dc664e36d33b7f462caac29f75f84b47cde"
	if got := hex.EncodeToString(own.Permutation()); got != goldenOwn {
		t.Errorf("the key's own permutation is %s, want %s", got, goldenOwn)
	}
	carrying := own.Carrying(former[0])
	again, err := secret.ParseReferenceKey(carrying.Reveal() + "\n")
	if err != nil || again.Reveal() != carrying.Reveal() {
		t.Fatalf("%v", err)
	}
	for _, key := range []*secret.ReferenceKey{carrying, again} {
		if !bytes.Equal(key.Permutation(), former[0]) || !bytes.Equal(key.Derive("session ids"), own.Derive("session ids")) {
			t.Error("the permutation is not carried over, or another use changes with it")
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %x", carrying, carrying, *carrying, carrying); strings.Contains(text, golden[:16]) {
		t.Errorf("the carried permutation is printed: %s", text)
	}
	for _, bad := range []string{own.Reveal() + ":", own.Reveal() + ":abc", ":" + own.Reveal(), carrying.Reveal() + ":" + own.Reveal()} {
		if _, err := secret.ParseReferenceKey(bad); !errors.Is(err, secret.ErrReferenceKey) {
			t.Errorf("a malformed key is read: %v", err)
		}
	}
}

func TestNothingPrintsSecrets(t *testing.T) {
	t.Parallel()
	const value = "whsec_veryprivatevalue000000"
	list := entry("a", 0x41)
	k := parse(t, list)
	type holder struct {
		Public  secret.Text
		private secret.Text
		Keys    *secret.Keys
		keys    *secret.Keys
		Ref     *secret.ReferenceKey
		ref     *secret.ReferenceKey
	}
	ref, err := secret.ParseReferenceKey(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x41}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	h := holder{secret.NewText(value), secret.NewText(value), k, k, ref, ref}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", h)
		fmt.Fprintf(&out, verb+"\n", &h)
		fmt.Fprintf(&out, verb+verb+verb+"\n", h.private, k, ref)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("x", slog.Any("h", h), slog.Any("t", h.Public), slog.Any("k", k))
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	for _, leak := range []string{value, "veryprivate", hex.EncodeToString([]byte("veryprivate")), "QUFBQUFB", "AAAAAAAA", "65 65 65", "41414141", "0x41, 0x41"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in the output:\n%s", leak, out.String())
		}
	}
	if h.Public.Reveal() != value || !h.Public.Equal(h.private) || h.Public.Equal(secret.Text{}) {
		t.Error("Text lost its value")
	}
}

func TestMint(t *testing.T) {
	t.Parallel()
	a, b := secret.Mint("sk_test_").Reveal(), secret.Mint("sk_test_").Reveal()
	if a == b || !strings.HasPrefix(a, "sk_test_") || len(a) != len("sk_test_")+43 {
		t.Errorf("Mint = %q, %q", a, b)
	}
}

// A key that was rotated out still signed callback addresses and cookies.
func TestReplacedKeySignsNothing(t *testing.T) {
	t.Parallel()
	old, both := parse(t, entry("old", 1)), parse(t, entry("new", 2)+","+entry("old", 1)+":open")
	if both.VerifyMAC("callbacks", []byte("data"), old.MAC("callbacks", []byte("data"))) {
		t.Error("a MAC of the replaced key is taken")
	}
	if !both.VerifyMAC("callbacks", []byte("data"), both.MAC("callbacks", []byte("data"))) {
		t.Error("a MAC of the newest key is refused")
	}
	sealed, err := old.Seal("label", []byte("plain"), []byte("row"))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := both.Open("label", sealed, []byte("row")); err != nil || string(plain) != "plain" {
		t.Errorf("an old ciphertext opens as %q, %v", plain, err)
	}
	if _, err := both.OpenCredential("label", sealed, []byte("row")); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("a cookie of the replaced key opens: %v", err)
	}
	if plain, err := old.OpenCredential("label", sealed, []byte("row")); err != nil || string(plain) != "plain" {
		t.Errorf("a cookie of a key in use opens as %q, %v", plain, err)
	}
	again := parse(t, both.Reveal())
	if again.VerifyMAC("callbacks", []byte("data"), old.MAC("callbacks", []byte("data"))) {
		t.Error("the mark is lost in Reveal")
	}
	if !bytes.Equal(both.FormerPermutations()[0], old.FormerPermutations()[0]) {
		t.Error("the permutation changes with the mark")
	}
	for _, list := range []string{entry("a", 1) + ":open", entry("a", 1) + "," + entry("b", 2) + ":closed", entry("a", 1) + "," + entry("b", 2) + ":"} {
		if _, err := secret.ParseKeys(list); !errors.Is(err, secret.ErrKeys) {
			t.Errorf("a list with a wrong mark is read: %v", err)
		}
	}
}

// Session ids and printed references stay valid for ever, so the test pins the bytes.
func TestReferenceKeyNeverChanges(t *testing.T) {
	t.Parallel()
	text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, secret.KeySize))
	k, err := secret.ParseReferenceKey(text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "8383fa2c73153920da33b7f42885bd1b775b3b724bd8a0ad5db79ceffec11cca"
	if got := hex.EncodeToString(k.Derive("session ids")); got != golden {
		t.Errorf("the key of session ids = %s, want %s", got, golden)
	}
	if bytes.Equal(k.Derive("session ids"), k.Derive("references")) {
		t.Error("two labels share a key")
	}
	if k.Reveal() != text {
		t.Error("Reveal and ParseReferenceKey differ")
	}
	if one, other := secret.GenerateReferenceKey(), secret.GenerateReferenceKey(); one.Reveal() == other.Reveal() {
		t.Error("two keys are equal")
	}
	var none secret.ReferenceKey
	if none.Derive("session ids") != nil || none.Reveal() != "" || none.String() != "absent" {
		t.Error("the zero value holds a key")
	}
	for _, bad := range []string{"", "x", text[:40], text + "AAAA", "1:" + text, entry("a", 1)} {
		if _, err := secret.ParseReferenceKey(bad); !errors.Is(err, secret.ErrReferenceKey) {
			t.Errorf("%q is read: %v", bad, err)
		}
	}
}
