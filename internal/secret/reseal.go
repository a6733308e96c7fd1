package secret

import "errors"

// Reseal seals a ciphertext with the newest key. With is nil when it is so already. Errors
// are those of Open.
func (k *Keys) Reseal(label string, ciphertext, aad []byte) (with []byte, err error) {
	masters := k.masters()
	if id, ok := SealedWith(ciphertext); ok && len(masters) > 0 && id == masters[0].id {
		return nil, nil
	}
	plain, err := k.Open(label, ciphertext, aad)
	if err != nil {
		return nil, err
	}
	return k.Seal(label, plain, aad)
}

// Unopened reports whether an error of Open means that the ciphertext does not open with
// these keys.
func Unopened(err error) bool { return errors.Is(err, ErrUnknownKey) || errors.Is(err, ErrSealed) }

// Resealed counts the ciphertexts of a table.
type Resealed struct {
	Table string
	// Sealed now with the newest master key, and sealed with it before.
	Sealed, Before int
	// Unopened are those that do not open with the given master keys. They stay as they
	// are.
	Unopened int
}

// SealedValues counts the ciphertexts of a table by the id of the master key that made
// them. An empty id is that of values that are no ciphertexts.
type SealedValues struct {
	Table string
	Keys  map[string]int
}
