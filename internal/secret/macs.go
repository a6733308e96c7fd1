package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash"
	"sync"
)

// MACSize is the length of a MAC, in bytes.
const MACSize = sha256.Size

// MACs makes and verifies the MACs of one label, for callers that do so for every record. It is safe for
// concurrent use and prints as "configured".
type MACs struct {
	// Behind a function, for the reason given at Keys.
	keys func() []macKey // newest key first
}

type macKey struct {
	master string     // the id of its master key
	states *sync.Pool // of *macState
}

type macState struct {
	mac hash.Hash
	sum []byte
}

// MACs returns what makes the MACs of Keys.MAC and verifies like Keys.VerifyMAC, without deriving a key
// each time. The error is ErrNotHeld if the newest key of the label is not held.
func (k *Keys) MACs(label string) (*MACs, error) {
	var found []macKey
	masters := k.masters()
	for i := range masters {
		if masters[i].open {
			continue
		}
		key, held := k.derive(&masters[i], Use{PurposeMAC, label})
		if !held {
			continue
		}
		found = append(found, macKey{masters[i].id, &sync.Pool{New: func() any { return &macState{mac: hmac.New(sha256.New, key)} }}})
	}
	if !k.Holds(Use{PurposeMAC, label}) {
		return nil, fmt.Errorf("%q: %w", label, ErrNotHeld)
	}
	return &MACs{keys: func() []macKey { return found }}, nil
}

// Append appends the MAC of data under the newest key to dst.
func (m *MACs) Append(dst, data []byte) []byte {
	pool := m.keys()[0].states
	s := pool.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	defer pool.Put(s)
	s.mac.Reset()
	s.mac.Write(data)
	return s.mac.Sum(dst)
}

// All returns the MACs of data under all keys, that of the newest one first: for what was stored under an earlier key.
func (m *MACs) All(data []byte) [][MACSize]byte {
	out := make([][MACSize]byte, 0, len(m.keys()))
	for _, key := range m.keys() {
		s := key.states.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
		s.mac.Reset()
		s.mac.Write(data)
		s.sum = s.mac.Sum(s.sum[:0])
		out = append(out, [MACSize]byte(s.sum))
		key.states.Put(s)
	}
	return out
}

// Verify reports whether mac is the MAC of data under any of the keys. Its time says which key made it,
// and nothing of the MAC.
func (m *MACs) Verify(data, mac []byte) bool {
	_, ok := m.MadeWith(data, mac)
	return ok
}

// MadeWith returns the id of the master key under which mac is the MAC of data; false if it is so under none.
func (m *MACs) MadeWith(data, mac []byte) (id string, ok bool) {
	for _, key := range m.keys() {
		s := key.states.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
		s.mac.Reset()
		s.mac.Write(data)
		s.sum = s.mac.Sum(s.sum[:0])
		same := subtle.ConstantTimeCompare(s.sum, mac) == 1
		key.states.Put(s)
		if same {
			return key.master, true
		}
	}
	return "", false
}

// String returns "configured" and never shows a key.
func (m *MACs) String() string { return configured }

// Format prints the result of String for every verb.
func (m *MACs) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(configured)) }
