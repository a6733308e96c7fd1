package secret

import (
	"crypto/ed25519"
)

// signatureHeader is the length of what stands before the id of the key in a signature: the format and
// the length of the id.
const signatureHeader = 2

// Sign returns an Ed25519 signature (RFC 8032) of data under the newest key's derivation for label. The
// same data have the same signature. The error is ErrNotHeld in a role that only verifies.
func (k *Keys) Sign(label string, data []byte) ([]byte, error) {
	masters := k.masters()
	if len(masters) == 0 {
		return nil, ErrKeys
	}
	m := &masters[0]
	private, held := k.private(m, label)
	if !held {
		return nil, ErrNotHeld
	}
	out := append([]byte{formatV1, byte(len(m.id))}, m.id...) //nolint:gosec // at most maxIDLength
	return append(out, ed25519.Sign(private, data)...), nil
}

// VerifySignature reports whether Sign made the signature for this label and these data, with a key that
// is not marked open. A role needs only the public part of the key.
func (k *Keys) VerifySignature(label string, data, signature []byte) bool {
	id, ok := SealedWith(signature)
	if !ok {
		return false
	}
	masters := k.masters()
	for i := range masters {
		if masters[i].id != id || masters[i].open {
			continue
		}
		public, held := k.public(&masters[i], label)
		return held && ed25519.Verify(public, data, signature[signatureHeader+len(id):])
	}
	return false
}

// PublicKey is the public part of a key that signs for a label.
type PublicKey struct {
	ID  string // of the master key
	Key ed25519.PublicKey
}

// PublicKeys returns the public keys of a label, the newest first, without those that are marked open and those that
// are not held. They are no secret.
func (k *Keys) PublicKeys(label string) (out []PublicKey) {
	masters := k.masters()
	for i := range masters {
		if public, held := k.public(&masters[i], label); held && !masters[i].open {
			out = append(out, PublicKey{masters[i].id, public})
		}
	}
	return out
}

// SignDetached signs as Sign does, for whoever verifies with a public key alone: it returns the bare signature of
// RFC 8032, and the id of its key beside it.
func (k *Keys) SignDetached(label string, data []byte) (signature []byte, keyID string, err error) {
	full, err := k.Sign(label, data)
	if err != nil {
		return nil, "", err
	}
	keyID, _ = SealedWith(full)
	return full[signatureHeader+len(keyID):], keyID, nil
}

// SignedWithNewest reports whether a signature names the newest key. If not, Sign would make another one.
func (k *Keys) SignedWithNewest(signature []byte) bool {
	id, ok := SealedWith(signature)
	masters := k.masters()
	return ok && len(masters) > 0 && masters[0].id == id
}

func (k *Keys) private(m *master, label string) (ed25519.PrivateKey, bool) {
	at := derivation{m.id, Use{"ed25519", label}}
	if made, ok := k.ring().derived.Load(at); ok {
		return made.(ed25519.PrivateKey), true //nolint:forcetypeassert // this purpose holds nothing else
	}
	seed, held := k.derive(m, Use{PurposeSign, label})
	if !held {
		return nil, false
	}
	private := ed25519.NewKeyFromSeed(seed)
	k.ring().derived.Store(at, private)
	return private, true
}

// public returns the key that verifies. A role that signs also verifies.
func (k *Keys) public(m *master, label string) (ed25519.PublicKey, bool) {
	if public, held := k.derive(m, Use{PurposeVerify, label}); held {
		return public, true
	}
	private, held := k.private(m, label)
	if !held {
		return nil, false
	}
	return private.Public().(ed25519.PublicKey), true //nolint:forcetypeassert // by crypto.Signer of ed25519
}

func publicKey(seed []byte) []byte {
	return ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey) //nolint:forcetypeassert // by crypto.Signer of ed25519
}
