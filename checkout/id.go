package checkout

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// ErrMalformedID says that a text is not an id of the expected kind. Callers treat it
// like an unknown id.
var ErrMalformedID = errors.New("malformed id")

// Prefixes of ids and secrets (contract, "Identifiers").
const (
	PrefixSession         = "chs_"
	PrefixClientSecret    = "chs_secret_"
	PrefixCompletionToken = "cpt_"
)

// A routable id holds 48 bits of milliseconds since 1970, 16 bits of partition, and
// random bits. Ids sort by time because the time comes first. With the partition, a page,
// a callback or a token finds its processor without a look-up.
const routeSize = 8

// NewSessionID makes a session id: sortable by time, routable, 128 random bits.
func NewSessionID(at time.Time, partition int32, random [16]byte) string {
	return routable(PrefixSession, at, partition, random[:])
}

// NewCompletionToken makes a completion token of 256 random bits for a session's
// partition. It does not reveal its time.
func NewCompletionToken(partition int32, random [32]byte) string {
	return routable(PrefixCompletionToken, time.Time{}, partition, random[:])
}

// SessionPartition returns the partition in a session id.
func SessionPartition(id string) (int32, error) { return route(PrefixSession, id, 16) }

// CompletionTokenPartition returns the partition in a completion token.
func CompletionTokenPartition(token string) (int32, error) {
	return route(PrefixCompletionToken, token, 32)
}

func routable(prefix string, at time.Time, partition int32, random []byte) string {
	b := make([]byte, routeSize, routeSize+len(random))
	var ms uint64
	if !at.IsZero() {
		ms = uint64(at.UnixMilli())
	}
	binary.BigEndian.PutUint64(b, ms<<16|uint64(uint16(partition))) //nolint:gosec // partition counts fit 16 bits
	return prefix + strings.ToLower(idEncoding.EncodeToString(append(b, random...)))
}

func route(prefix, id string, random int) (int32, error) {
	text, ok := strings.CutPrefix(id, prefix)
	if !ok || strings.ToLower(text) != text {
		return 0, ErrMalformedID
	}
	b, err := idEncoding.DecodeString(strings.ToUpper(text))
	if err != nil || len(b) != routeSize+random || strings.ToLower(idEncoding.EncodeToString(b)) != text {
		return 0, ErrMalformedID
	}
	return int32(binary.BigEndian.Uint16(b[6:])), nil
}
