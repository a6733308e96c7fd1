package bank_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/gopenpgp/v3/crypto"

	"quittance/internal/connector/bank"
	"quittance/internal/secret"
)

// pgpKey makes a key: the key, and its private and public forms.
func pgpKey(t *testing.T, of string) (key *crypto.Key, private secret.Text, public string) {
	t.Helper()
	key, err := crypto.PGP().KeyGeneration().AddUserId(of, of+"@example.org").New().GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Armor()
	if err != nil {
		t.Fatal(err)
	}
	public, err = key.GetArmoredPublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key, secret.NewText(text), public
}

// Both sides open what the other one protects; a file counts only with the bank's signature, also one that the bank's clock
// dates a day ahead.
func TestKeys(t *testing.T) {
	t.Parallel()
	theirs, bankPrivate, bankPublic := pgpKey(t, "bank")
	ours, ownPrivate, ownPublic := pgpKey(t, "agency")
	stranger, _, strangerPublic := pgpKey(t, "stranger")
	read := func(own secret.Text, other string) *bank.Keys {
		k, err := bank.ReadKeys(own, other)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	agency, theBank := read(ownPrivate, bankPublic), read(bankPrivate, ownPublic)
	sent, err := agency.Protect([]byte(content))
	if err != nil || bytes.Contains(sent, []byte("salaries")) {
		t.Fatal(err)
	}
	if opened, err := theBank.Open(sent); err != nil || string(opened) != content {
		t.Errorf("the bank reads %d bytes, %v", len(opened), err)
	}
	if _, err := read(bankPrivate, strangerPublic).Open(sent); !errors.Is(err, bank.ErrProtection) {
		t.Errorf("a signature of another key: %v", err)
	}
	if _, err := agency.Open(sent); !errors.Is(err, bank.ErrProtection) {
		t.Errorf("a file for somebody else: %v", err)
	}
	tampered := bytes.Clone(sent)
	tampered[len(tampered)/2] ^= 1
	for what, data := range map[string][]byte{"tampered": tampered, "cut": sent[:len(sent)/2], "plain": []byte("<Document/>"), "empty": nil} {
		if _, err := theBank.Open(data); !errors.Is(err, bank.ErrProtection) {
			t.Errorf("%s: %v", what, err)
		}
	}
	write := func(signer *crypto.Key, at time.Time) []byte {
		builder := crypto.PGP().Encryption().Recipient(ours)
		if signer != nil {
			builder = builder.SigningKey(signer).SignTime(at.Unix())
		}
		handle, err := builder.New()
		if err != nil {
			t.Fatal(err)
		}
		message, err := handle.Encrypt([]byte("report"))
		if err != nil {
			t.Fatal(err)
		}
		armored, err := message.ArmorBytes()
		if err != nil {
			t.Fatal(err)
		}
		return armored
	}
	for what, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"signed": {write(theirs, time.Now()), true}, "a day ahead": {write(theirs, time.Now().Add(24*time.Hour)), true},
		"unsigned": {write(nil, time.Time{}), false}, "signed by a stranger": {write(stranger, time.Now()), false},
	} {
		opened, err := agency.Open(c.data)
		if c.ok != (err == nil && string(opened) == "report") || !c.ok && !errors.Is(err, bank.ErrProtection) {
			t.Errorf("%s: %q, %v", what, opened, err)
		}
	}
}

// Keys of the wrong kind are refused when they are read, and no error has a key.
func TestKeysOfTheWrongKind(t *testing.T) {
	t.Parallel()
	key, private, public := pgpKey(t, "agency")
	locked, err := crypto.PGP().LockKey(key, []byte("passphrase"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := locked.Armor()
	if err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]struct{ own, bank string }{
		"pgp_key: give the agency's":  {public, public},
		"pgp_key: give the key":       {text, public},
		"pgp_bank_key: give the bank": {private.Reveal(), private.Reveal()},
		"pgp_bank_key: give":          {private.Reveal(), "x"},
	} {
		if _, err := bank.ReadKeys(secret.NewText(c.own), c.bank); !errors.Is(err, bank.ErrProfile) || !strings.Contains(err.Error(), field) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
