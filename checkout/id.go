package checkout

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// ErrMalformedID is text that cannot be an id of the kind asked for. To a caller
// it is the same as an unknown one.
var ErrMalformedID = errors.New("malformed id")

// Prefixes of ids and secrets (contract, "Identifiers").
const (
	PrefixSession         = "chs_"
	PrefixClientSecret    = "chs_secret_"
	PrefixCompletionToken = "cpt_"
)

// A routable id is: 48 bits of milliseconds since 1970, 16 bits of partition, the
// random part. Time first, so that ids sort by it; the partition, so that a page,
// a callback or a token finds its processor without a look-up.
const routeSize = 8

// NewSessionID makes a session id: sortable by time, routable, 128 random bits.
func NewSessionID(at time.Time, partition int32, random [16]byte) string {
	return routable(PrefixSession, at, partition, random[:])
}

// NewCompletionToken makes a completion token of 256 random bits for a session's
// partition. Its time is not told.
func NewCompletionToken(partition int32, random [32]byte) string {
	return routable(PrefixCompletionToken, time.Time{}, partition, random[:])
}

// SessionPartition is the partition that a session id carries.
func SessionPartition(id string) (int32, error) { return route(PrefixSession, id, 16) }

// CompletionTokenPartition is the partition that a completion token carries.
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
