package batchseal_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"quittance/internal/batchseal"
	"quittance/internal/receipts"
	"quittance/internal/secret"
)

func claims() batchseal.Claims {
	return batchseal.Claims{
		Version: batchseal.Version, Kind: batchseal.KindAdvice, Issuer: "pay.example", IssuedAt: 1_796_000_000, Agency: "impots", BatchRef: "salaries<&>", Revision: 2, Amount: 150_000,
		Currency: "XAF", State: "paid", LineRef: "AGENT-1", PayoutRef: "QD1", PaidAt: 1_795_990_000,
	}
}

// A token and the signature of a file are verified with the published keys alone, by our code and by a JOSE library. Others, and
// those of receipts, are not.
func TestSignatures(t *testing.T) {
	t.Parallel()
	master := secret.GenerateKeys()
	signer, err := batchseal.NewSigner(master)
	if err != nil {
		t.Fatal(err)
	}
	all, err := batchseal.Keys(master)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := receipts.ParseJWKS(all.JWKS(time.Unix(1_796_000_000, 0)))
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, live := range []bool{true, false} {
		token, err := signer.Token(live, claims())
		if err != nil {
			t.Fatal(err)
		}
		got, err := batchseal.Verify(keys, "pay.example", " https://pay.example/q#"+token+"\n")
		if err != nil || got.Claims != claims() || got.Test() == live {
			t.Errorf("%+v, %v", got, err)
		}
		file := []byte("line_ref,amount\nA,1\n")
		detached, err := signer.Detached(live, file)
		if err != nil {
			t.Fatal(err)
		}
		if k, err := batchseal.VerifyDetached(keys, detached, file); err != nil || k.Live != live {
			t.Errorf("%+v, %v", k, err)
		}
		jws, err := jose.ParseDetached(detached, file, []jose.SignatureAlgorithm{jose.EdDSA})
		if err != nil {
			t.Fatal(err)
		}
		k, _ := keys.Find(jws.Signatures[0].Header.KeyID)
		if err := jws.DetachedVerify(file, ed25519.PublicKey(k.Public)); err != nil {
			t.Errorf("a JOSE library refuses the signature: %v", err)
		}
		if _, err := batchseal.VerifyDetached(keys, detached, append(file, ' ')); !errors.Is(err, receipts.ErrForged) {
			t.Errorf("another file: %v", err)
		}
		if _, err := batchseal.Verify(keys, "other.example", token); !errors.Is(err, receipts.ErrNotOurs) {
			t.Errorf("another host: %v", err)
		}
		// Neither counts as the other, nor as a receipt, and a receipt is no paper.
		if _, err := batchseal.Verify(keys, "", detached); !errors.Is(err, receipts.ErrNotOurs) {
			t.Errorf("a signature of a file: %v", err)
		}
		if _, err := keys.Verify("", token); err == nil {
			t.Error("a paper counts as a receipt")
		}
		forgeries(t, keys, token)
	}
}

func forgeries(t *testing.T, keys receipts.Keys, token string) {
	t.Helper()
	parts := strings.Split(token, ".")
	changed := claims()
	changed.Amount++
	body, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	plain, _ := base64.RawURLEncoding.DecodeString(parts[0])
	for name, forged := range map[string]string{
		"another amount": parts[0] + "." + text(body) + "." + parts[2],
		"no algorithm":   text([]byte(strings.Replace(string(plain), "EdDSA", "none", 1))) + "." + parts[1] + ".",
		"a receipt":      text([]byte(strings.Replace(string(plain), "quittance-batch+jwt", "quittance+jwt", 1))) + "." + parts[1] + "." + parts[2],
		"padding":        token + "=",
		"nothing":        "..",
	} {
		if v, err := batchseal.Verify(keys, "", forged); err == nil {
			t.Errorf("%s is verified: %+v", name, v)
		}
	}
	if _, err := batchseal.Verify(nil, "", token); !errors.Is(err, receipts.ErrUnknownKey) {
		t.Errorf("without keys: %v", err)
	}
	if !batchseal.IsToken(token) || batchseal.IsToken("https://pay.example/q#"+text([]byte(`{"alg":"EdDSA","kid":"x","typ":"quittance+jwt"}`))+".a.b") {
		t.Error("a token of a paper is not told from that of a receipt")
	}
}
