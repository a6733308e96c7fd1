package bank

import (
	"errors"
	"fmt"

	"github.com/ProtonMail/gopenpgp/v3/crypto" // OpenPGP, maintained, over the fork of x/crypto that is
	"quittance/internal/secret"
)

// ErrProtection says that a file of the bank does not open with the agency's key, or lacks the bank's valid signature.
// Nothing of it counts.
var ErrProtection = errors.New("protection of a file of the bank")

// Keys sign and encrypt files for a bank, and open those of the bank. Safe for concurrent use.
type Keys struct{ own, bank *crypto.Key }

// ReadKeys reads the agency's private key and the bank's public key, both OpenPGP in armor. The private key has no
// passphrase: it is sealed with the account. The error is ErrProfile.
func ReadKeys(own secret.Text, bank string) (*Keys, error) {
	private, err := crypto.NewKeyFromArmored(own.Reveal())
	if err != nil || !private.IsPrivate() {
		return nil, faulty("pgp_key", "give the agency's private OpenPGP key in armor")
	}
	if unlocked, err := private.IsUnlocked(); err != nil || !unlocked {
		return nil, faulty("pgp_key", "give the key without a passphrase: the account is sealed")
	}
	public, err := crypto.NewKeyFromArmored(bank)
	if err != nil || public.IsPrivate() {
		return nil, faulty("pgp_bank_key", "give the bank's public OpenPGP key in armor")
	}
	return &Keys{private, public}, nil
}

// Protect signs and encrypts a file. Two calls give other bytes: what is sent is what the permit names, so it is stored
// before.
func (k *Keys) Protect(data []byte) ([]byte, error) {
	handle, err := crypto.PGP().Encryption().Recipient(k.bank).SigningKey(k.own).New()
	if err != nil {
		return nil, fmt.Errorf("encrypting a file for the bank: %w", err)
	}
	message, err := handle.Encrypt(data)
	if err != nil {
		return nil, fmt.Errorf("encrypting a file for the bank: %w", err)
	}
	return message.Bytes(), nil
}

// Open decrypts a file of the bank and verifies that the bank has signed it. Times are not compared: a bank's clock may be
// wrong, and the agency says which key is the bank's. The error is ErrProtection.
func (k *Keys) Open(data []byte) ([]byte, error) {
	handle, err := crypto.PGP().Decryption().DecryptionKey(k.own).VerificationKey(k.bank).DisableVerifyTimeCheck().MaxDecompressedMessageSize(maxReport).New()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtection, err)
	}
	opened, err := handle.Decrypt(data, crypto.Auto)
	if err != nil {
		return nil, fmt.Errorf("%w: it does not open with the agency's key: %w", ErrProtection, err)
	}
	if err := opened.SignatureError(); err != nil {
		return nil, fmt.Errorf("%w: it is not signed by the bank's key: %w", ErrProtection, err)
	}
	return opened.Bytes(), nil
}
