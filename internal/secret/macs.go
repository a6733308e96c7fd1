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
	keys func() []*sync.Pool // of *macState, newest key first
}

type macState struct {
	mac hash.Hash
	sum []byte
}

// MACs returns what makes the MACs of Keys.MAC and verifies like Keys.VerifyMAC, without deriving a key
// each time. The error is ErrNotHeld if the newest key of the label is not held.
func (k *Keys) MACs(label string) (*MACs, error) {
	var pools []*sync.Pool
	masters := k.masters()
	for i := range masters {
		if masters[i].open {
			continue
		}
		key, held := k.derive(&masters[i], Use{PurposeMAC, label})
		if !held {
			continue
		}
		pools = append(pools, &sync.Pool{New: func() any { return &macState{mac: hmac.New(sha256.New, key)} }})
	}
	if !k.Holds(Use{PurposeMAC, label}) {
		return nil, fmt.Errorf("%q: %w", label, ErrNotHeld)
	}
	return &MACs{keys: func() []*sync.Pool { return pools }}, nil
}

// Append appends the MAC of data under the newest key to dst.
func (m *MACs) Append(dst, data []byte) []byte {
	pool := m.keys()[0]
	s := pool.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	defer pool.Put(s)
	s.mac.Reset()
	s.mac.Write(data)
	return s.mac.Sum(dst)
}

// Verify reports whether mac is the MAC of data under any of the keys. Its time says which key made it,
// and nothing of the MAC.
func (m *MACs) Verify(data, mac []byte) bool {
	for _, pool := range m.keys() {
		s := pool.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
		s.mac.Reset()
		s.mac.Write(data)
		s.sum = s.mac.Sum(s.sum[:0])
		same := subtle.ConstantTimeCompare(s.sum, mac) == 1
		pool.Put(s)
		if same {
			return true
		}
	}
	return false
}

// String returns "configured" and never shows a key.
func (m *MACs) String() string { return configured }

// Format prints the result of String for every verb.
func (m *MACs) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(configured)) }
