package checkout

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// ErrMalformedID says that a text is not an id of the expected kind, or that its MAC is
// not ours. Callers treat it like an unknown id.
var ErrMalformedID = errors.New("malformed id")

// Prefixes of ids and secrets (contract, "Identifiers").
const (
	PrefixSession         = "chs_"
	PrefixClientSecret    = "chs_secret_"
	PrefixCompletionToken = "cpt_"
)

// A routable id holds 48 bits of milliseconds since 1970, 16 bits of partition, and
// random bits. Ids sort by time because the time comes first. With the partition, a page,
// a callback or a token finds its processor without a look-up. The MAC of what stands
// before it ends the id, so that the edge recognises a made-up id without a look-up.
const (
	routeSize   = 8
	sessionSize = routeSize + 16
	tokenSize   = routeSize + 32
	// macLength is the number of characters of the MAC. They hold 50 bits. More would make
	// addresses longer and gain nothing: each guess costs a request, and a correct guess
	// causes only the look-up of a session that does not exist.
	macLength = 10
)

// idAlphabet is that of base32hex, whose order is that of the bytes, in small letters.
const idAlphabet = "0123456789abcdefghijklmnopqrstuv"

// idEncoding encodes ids.
var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// NewSessionID makes a session id without a MAC: sortable by time, routable, 128 random
// bits. Sessions have ids of IDs; ids without a MAC are from before 2026-11-22.
func NewSessionID(at time.Time, partition int32, random [16]byte) string {
	return routable(PrefixSession, at, partition, random[:])
}

// SessionPartition returns the partition in a session id. It does not verify the MAC.
func SessionPartition(id string) (int32, error) { return route(PrefixSession, id, sessionSize) }

// SessionMade returns when a session id was made, UTC, in milliseconds. It does not verify the MAC.
// The error is ErrMalformedID.
func SessionMade(id string) (time.Time, error) {
	if _, err := route(PrefixSession, id, sessionSize); err != nil {
		return time.Time{}, err
	}
	text := id[len(PrefixSession):]
	b, err := idEncoding.DecodeString(text[:idEncoding.EncodedLen(sessionSize)])
	if err != nil {
		return time.Time{}, ErrMalformedID
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b) >> 16)).UTC(), nil
}

// SessionsSince returns the lower bound of the ids of sessions that were made at a time or later, in
// whole milliseconds: it sorts before them, and after the ids of earlier sessions.
func SessionsSince(at time.Time) string {
	return strings.TrimRight(NewSessionID(at, 0, [16]byte{}), idAlphabet[:1])
}

// IDs makes session ids and completion tokens with a MAC, and recognises them. Safe for
// concurrent use if mac is.
type IDs struct {
	mac func(text string) [sha256.Size]byte
}

// NewIDs takes the MAC of texts, under a key that never changes: ids are valid for ever.
func NewIDs(mac func(text string) [sha256.Size]byte) IDs { return IDs{mac} }

// NewSession makes a session id: sortable by time, routable, 128 random bits, a MAC.
func (i IDs) NewSession(at time.Time, partition int32, random [16]byte) string {
	return i.signed(routable(PrefixSession, at, partition, random[:]))
}

// NewCompletionToken makes a completion token of 256 random bits for a session's
// partition, with a MAC. It does not reveal its time.
func (i IDs) NewCompletionToken(partition int32, random [32]byte) string {
	return i.signed(routable(PrefixCompletionToken, time.Time{}, partition, random[:]))
}

// CheckSession returns the partition in a session id, or ErrMalformedID unless we may have
// made it. proven is false for an id without a MAC, which anybody can make up.
func (i IDs) CheckSession(id string) (partition int32, proven bool, err error) {
	return i.check(PrefixSession, id, sessionSize)
}

// CheckCompletionToken is CheckSession for completion tokens.
func (i IDs) CheckCompletionToken(token string) (partition int32, proven bool, err error) {
	return i.check(PrefixCompletionToken, token, tokenSize)
}

func (i IDs) signed(id string) string {
	mac := i.text(id)
	return id + string(mac[:])
}

// text returns the MAC of an id as its characters.
func (i IDs) text(id string) (out [macLength]byte) {
	const whole = (macLength*5 + 7) / 8
	mac := i.mac(id)
	var text [(whole*8 + 4) / 5]byte
	idEncoding.Encode(text[:], mac[:whole])
	copy(out[:], text[:])
	return out
}

func (i IDs) check(prefix, id string, size int) (partition int32, proven bool, err error) {
	if partition, err = route(prefix, id, size); err != nil {
		return 0, false, err
	}
	end := len(prefix) + idEncoding.EncodedLen(size)
	if len(id) == end {
		return partition, false, nil
	}
	if mac := i.text(id[:end]); subtle.ConstantTimeCompare(mac[:], []byte(id[end:])) == 0 {
		return 0, false, ErrMalformedID
	}
	return partition, true, nil
}

func routable(prefix string, at time.Time, partition int32, random []byte) string {
	var ms uint64
	if !at.IsZero() {
		ms = uint64(at.UnixMilli())
	}
	var b [tokenSize]byte
	binary.BigEndian.PutUint64(b[:], ms<<16|uint64(uint16(partition))) //nolint:gosec // partition counts fit 16 bits
	n := routeSize + copy(b[routeSize:], random)
	var text [len(PrefixCompletionToken) + (tokenSize*8+4)/5]byte
	idEncoding.Encode(text[copy(text[:], prefix):], b[:n])
	return string(text[:len(prefix)+idEncoding.EncodedLen(n)])
}

// route reads an id with or without a MAC. Every accepted id has one spelling.
func route(prefix, id string, size int) (int32, error) {
	text, ok := strings.CutPrefix(id, prefix)
	length := idEncoding.EncodedLen(size)
	if !ok || len(text) != length && len(text) != length+macLength {
		return 0, ErrMalformedID
	}
	text, mac := text[:length], text[length:]
	b, err := idEncoding.DecodeString(text)
	if err != nil || len(b) != size || strings.Trim(mac, idAlphabet) != "" {
		return 0, ErrMalformedID
	}
	var again [(tokenSize*8 + 4) / 5]byte
	if idEncoding.Encode(again[:], b); string(again[:length]) != text {
		return 0, ErrMalformedID // the last character has bits that belong to no byte
	}
	return int32(binary.BigEndian.Uint16(b[6:])), nil
}
