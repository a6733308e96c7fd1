package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// KeySize is the length of a master key and of every derived key, in bytes.
const KeySize = 32

const maxIDLength = 32

// Errors of this package, for errors.Is.
var (
	// ErrKeys says that a list of master keys is malformed. Its text never
	// holds key material.
	ErrKeys = errors.New("master keys: want id:base64[:open][,id:base64[:open]…], newest first, 32 bytes each, the first without :open")
	// ErrRoleKeys says that the keys of a role are malformed. Its text never holds key material.
	ErrRoleKeys = errors.New("keys of a role: want the text that `quittance secrets derive ROLE` prints, whole")
	// ErrUnknownKey says that a ciphertext was sealed with a master key that is
	// not in the list.
	ErrUnknownKey = errors.New("sealed with a master key that is not configured")
	// ErrNotHeld says that the keys were derived for one role and lack this one.
	ErrNotHeld = errors.New("this process has not the key: it belongs to other roles")
	// ErrSealed says that the bytes are not a ciphertext of this label and this
	// additional data, or that they were changed.
	ErrSealed = errors.New("sealed value does not open")
)

// Keys is the list of master keys, or of the keys that one role derives from them (see
// Subset). It is safe for concurrent use and prints as "configured". The zero value holds no
// key; get one from ParseKeys or GenerateKeys.
type Keys struct {
	// Behind a function, because fmt prints unexported fields of a struct
	// without asking their type, and follows pointers when the verb is wrong.
	ring func() *ring
}

type ring struct {
	role    string   // for which the keys were derived; empty for master keys
	masters []master // newest first
	derived sync.Map // derivation → cipher.AEAD, []byte or ed25519.PrivateKey
}

func newKeys(role string, masters []master) *Keys {
	r := &ring{role: role, masters: masters}
	return &Keys{ring: func() *ring { return r }}
}

func (k *Keys) masters() []master {
	if k == nil || k.ring == nil {
		return nil
	}
	return k.ring().masters
}

type master struct {
	id  string
	key [KeySize]byte
	// held are the derived keys in place of the master key; nil for a master key.
	held map[Use][]byte
	// open marks a key that was replaced: it opens old ciphertexts and does nothing else.
	open bool
}

// derivation names a derived key: the id of its master key, and its use.
type derivation struct {
	id string
	Use
}

// ParseKeys reads `id:base64[:open][,…]`, newest first: ids of 1 to 32 letters, digits,
// hyphens or underscores, keys of 32 bytes in standard base64. A key marked open opens old
// ciphertexts only: it verifies no MAC and signs nobody in. The first key is never marked.
// Errors are ErrKeys and name the entry by its position. It also reads the keys of a role, as
// Reveal writes those of Subset; their errors are ErrRoleKeys.
func ParseKeys(list string) (*Keys, error) {
	if strings.HasPrefix(strings.TrimSpace(list), subsetHeader) {
		return parseSubset(list)
	}
	var masters []master
	seen := map[string]bool{}
	for i, entry := range strings.Split(strings.TrimSpace(list), ",") {
		id, encoded, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if !ok || !validID(id) {
			return nil, fmt.Errorf("entry %d: %w", i+1, ErrKeys)
		}
		if seen[id] {
			return nil, fmt.Errorf("entry %d: id %q occurs twice: %w", i+1, id, ErrKeys)
		}
		seen[id] = true
		encoded, mark, marked := strings.Cut(encoded, ":")
		if marked && (mark != "open" || i == 0) {
			return nil, fmt.Errorf("entry %d (%q): %w", i+1, id, ErrKeys)
		}
		raw, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(encoded, "="))
		if err != nil || len(raw) != KeySize {
			return nil, fmt.Errorf("entry %d (%q) is not %d bytes in base64: %w", i+1, id, KeySize, ErrKeys)
		}
		masters = append(masters, master{id: id, key: [KeySize]byte(raw), open: marked})
	}
	return newKeys("", masters), nil
}

// GenerateKeys makes a list of one random key.
func GenerateKeys() *Keys {
	m := master{id: "k" + strings.ToLower(rand.Text()[:7])}
	_, _ = rand.Read(m.key[:]) // never returns an error: the program ends instead
	return newKeys("", []master{m})
}

// Reveal returns the list in the form that ParseKeys reads, to store it in the one
// file or environment variable that keeps it.
func (k *Keys) Reveal() string {
	masters := k.masters()
	if k.Role() != "" {
		return revealSubset(k.Role(), masters)
	}
	entries := make([]string, len(masters))
	for i, m := range masters {
		entries[i] = m.id + ":" + base64.StdEncoding.EncodeToString(m.key[:])
		if m.open {
			entries[i] += ":open"
		}
	}
	return strings.Join(entries, ",")
}

// Seal encrypts plaintext with AES-256-GCM under the newest key's derivation for
// label. Open needs the same label and additional data. The additional data name the
// owner of the value (for instance the id of its row), so that a ciphertext that was
// moved elsewhere does not open. Rotate the key after 2³² values of one label.
func (k *Keys) Seal(label string, plaintext, aad []byte) ([]byte, error) {
	masters := k.masters()
	if len(masters) == 0 {
		return nil, fmt.Errorf("sealing: %w", ErrKeys)
	}
	m := &masters[0]
	aead, err := k.aead(m, label)
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	out := append([]byte{formatV1, byte(len(m.id))}, m.id...)        //nolint:gosec // at most maxIDLength
	return aead.Seal(out, nil, plaintext, additional(out, aad)), nil //nolint:gosec // this AEAD makes its own random nonce
}

// Open decrypts what Seal made. Errors are ErrUnknownKey and ErrSealed.
func (k *Keys) Open(label string, ciphertext, aad []byte) ([]byte, error) {
	id, ok := SealedWith(ciphertext)
	if !ok {
		return nil, fmt.Errorf("opening: %w", ErrSealed)
	}
	header := ciphertext[:2+len(id)]
	masters := k.masters()
	for i := range masters {
		if masters[i].id != id {
			continue
		}
		aead, err := k.aead(&masters[i], label)
		if err != nil {
			return nil, fmt.Errorf("opening: %w", err)
		}
		plain, err := aead.Open(nil, nil, ciphertext[len(header):], additional(header, aad))
		if err != nil {
			return nil, fmt.Errorf("opening: %w", ErrSealed)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("opening what key %q sealed: %w", id, ErrUnknownKey)
}

// OpenCredential is Open for what signs somebody in, such as a cookie. A key marked open
// opens none: ErrUnknownKey.
func (k *Keys) OpenCredential(label string, ciphertext, aad []byte) ([]byte, error) {
	plain, err := k.Open(label, ciphertext, aad)
	if err != nil {
		return nil, err
	}
	id := string(ciphertext[2 : 2+int(ciphertext[1])])
	for _, m := range k.masters() {
		if m.id == id && m.open {
			return nil, fmt.Errorf("opening what key %q sealed: %w", id, ErrUnknownKey)
		}
	}
	return plain, nil
}

// formatV1 is the first byte of a ciphertext. The length of the key's id, the id, the
// nonce and GCM's output follow.
const formatV1 = 1

// additional binds the header to the ciphertext. The header's length comes first, so
// that no other pair of header and data gives the same bytes.
func additional(header, aad []byte) []byte {
	out := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(header)+len(aad)), uint16(len(header))) //nolint:gosec // at most 34
	out = append(out, header...)
	return append(out, aad...)
}

// SealedWith returns the id of the master key that made a ciphertext. ok is false for what
// Seal did not make.
func SealedWith(ciphertext []byte) (id string, ok bool) {
	if len(ciphertext) < 2 || ciphertext[0] != formatV1 || len(ciphertext) < 2+int(ciphertext[1]) {
		return "", false
	}
	return string(ciphertext[2 : 2+int(ciphertext[1])]), true
}

// KeyEntry is an entry of the list of master keys, without its key.
type KeyEntry struct {
	ID string
	// Open marks a key that was replaced.
	Open bool
}

// Entries lists the master keys, newest first.
func (k *Keys) Entries() []KeyEntry {
	var out []KeyEntry
	for _, m := range k.masters() {
		out = append(out, KeyEntry{m.id, m.open})
	}
	return out
}

// MAC is the HMAC-SHA256 of data under the newest key's derivation for label; nil without that key.
func (k *Keys) MAC(label string, data []byte) []byte {
	masters := k.masters()
	if len(masters) == 0 {
		return nil // and VerifyMAC accepts nothing
	}
	mac, _ := k.mac(&masters[0], label, data)
	return mac
}

// VerifyMAC reports whether mac is the MAC of data under any of the keys that are not
// marked open. Its time depends only on the number of keys and the length of data.
func (k *Keys) VerifyMAC(label string, data, mac []byte) bool {
	ok := 0
	masters := k.masters()
	for i := range masters {
		if masters[i].open {
			continue
		}
		if want, held := k.mac(&masters[i], label, data); held {
			ok |= subtle.ConstantTimeCompare(want, mac)
		}
	}
	return ok == 1
}

// FormerPermutations returns the keys with which the master keys permuted references before
// there was a ReferenceKey, the oldest master key's first. An installation used the first.
func (k *Keys) FormerPermutations() (out [][]byte) {
	masters := k.masters()
	for i := len(masters) - 1; i >= 0; i-- {
		if key, held := k.derive(&masters[i], Use{"permutation", "reference"}); held {
			out = append(out, append([]byte(nil), key...))
		}
	}
	return out
}

func (k *Keys) mac(m *master, label string, data []byte) (mac []byte, held bool) {
	key, held := k.derive(m, Use{PurposeMAC, label})
	if !held {
		return nil, false
	}
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil), true
}

func (k *Keys) aead(m *master, label string) (cipher.AEAD, error) {
	at := derivation{m.id, Use{"aead", label}}
	if made, ok := k.ring().derived.Load(at); ok {
		return made.(cipher.AEAD), nil //nolint:forcetypeassert // this purpose holds nothing else
	}
	key, held := k.derive(m, Use{PurposeSeal, label})
	if !held {
		return nil, fmt.Errorf("%q: %w", label, ErrNotHeld)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	k.ring().derived.Store(at, aead)
	return aead, nil
}

// derive returns the key of a use. held is false if the keys of a role lack it.
func (k *Keys) derive(m *master, use Use) (key []byte, held bool) {
	if m.held != nil {
		key, held = m.held[use]
		return key, held
	}
	at := derivation{m.id, use}
	if made, ok := k.ring().derived.Load(at); ok {
		return made.([]byte), true //nolint:forcetypeassert // these purposes hold nothing else
	}
	key = hkdfKey(m, use)
	k.ring().derived.Store(at, key)
	return key, true
}

// hkdfKey derives the key of a use from a master key. That of PurposeVerify is the public part of
// PurposeSign.
func hkdfKey(m *master, use Use) []byte {
	if use.Purpose == PurposeVerify {
		return publicKey(hkdfKey(m, Use{PurposeSign, use.Label}))
	}
	// The only errors are a refused hash and a refused length, and neither can occur.
	key, err := hkdf.Key(sha256.New, m.key[:], nil, "quittance/v1/"+string(use.Purpose)+"/"+use.Label, KeySize)
	if err != nil {
		panic(err) // a FIPS build without SHA-256: nothing could ever have been derived
	}
	return key
}

func validID(id string) bool {
	if id == "" || len(id) > maxIDLength {
		return false
	}
	for _, c := range []byte(id) {
		if !isAlphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// String returns "configured" and never shows a key.
func (k *Keys) String() string {
	if len(k.masters()) == 0 {
		return absent
	}
	return configured
}

// Format prints the result of String for every verb.
func (k *Keys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue logs the result of String.
func (k *Keys) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText writes the result of String. It cannot be used to store keys.
func (k *Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
