package disbursement

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrMalformedID says that a text is no batch id, or that its MAC is not ours. Callers treat it like an unknown id.
var ErrMalformedID = errors.New("malformed id")

// PrefixBatch begins the ids of batches.
const PrefixBatch = "dsb_"

// A batch id has the form of a session id: 48 bits of milliseconds since 1970, 16 bits of partition, 128 random bits, and
// a MAC of 50 bits, so that the edge finds the processor and recognises a made-up id without a look-up.
const (
	idSize    = 8 + 16
	idLength  = (idSize*8 + 4) / 5
	macSize   = 7
	macLength = 10
)

// idEncoding is base32hex in small letters, whose order is that of the bytes.
var idEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// IDs makes ids of batches and recognises them. Safe for concurrent use if mac is.
type IDs struct {
	mac func(text string) [sha256.Size]byte
}

// NewIDs takes the MAC of texts, under a key that never changes: ids are valid for ever.
func NewIDs(mac func(text string) [sha256.Size]byte) IDs { return IDs{mac} }

// New makes the id of a batch that is opened at a time, in whole milliseconds, and lives in a partition.
func (i IDs) New(at time.Time, partition int32, random [16]byte) string {
	var b [idSize]byte
	binary.BigEndian.PutUint64(b[:], uint64(at.UnixMilli())<<16|uint64(uint16(partition))) //nolint:gosec // partition counts fit 16 bits
	copy(b[8:], random[:])
	return i.signed(PrefixBatch + idEncoding.EncodeToString(b[:]))
}

// Partition returns the partition in the id of a batch, or ErrMalformedID unless we have made it.
func (i IDs) Partition(id string) (int32, error) {
	text, ok := strings.CutPrefix(id, PrefixBatch)
	if !ok || len(text) != idLength+macLength {
		return 0, ErrMalformedID
	}
	b, err := idEncoding.DecodeString(text[:idLength])
	if err != nil || subtle.ConstantTimeCompare([]byte(i.signed(PrefixBatch+text[:idLength])), []byte(id)) == 0 {
		return 0, ErrMalformedID
	}
	return int32(binary.BigEndian.Uint16(b[6:])), nil
}

func (i IDs) signed(id string) string {
	mac := i.mac(id)
	return id + idEncoding.EncodeToString(mac[:macSize])[:macLength]
}

// AttemptID is the SHA-256 that names one attempt to pay one line. It is made of the state alone, so that a redelivered
// or restored command names the same attempt.
type AttemptID [sha256.Size]byte

// NewAttemptID returns the id of an attempt of the line at a position, both from their first: 0 and 1.
func NewAttemptID(batch string, position, attempt int) AttemptID {
	return sha256.Sum256(fmt.Appendf(nil, "payout|%s|%d|%d", batch, position, attempt))
}

// UUID returns the id in the form of a UUID of version 4 (RFC 9562), for operators that want one.
func (a AttemptID) UUID() string {
	u := [16]byte(a[:16])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// crockford is the alphabet of Crockford's base32, which lacks I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// The form of a reference that banks and operators get: a prefix, 110 bits of an id, and two check characters.
const (
	refPrefix  = "QD" // of an attempt
	filePrefix = "QF" // of a file
	refBody    = 22
	refCheck   = 2
	// refModulus is the largest prime below 32²: the check finds every wrong character and every two that are exchanged.
	refModulus = 1021
)

// PayoutRef returns the reference of the attempt that travels to the operator and stands on statements, such as
// QD7X….
func (a AttemptID) PayoutRef() string { return reference(refPrefix, a) }

// FileRef returns the reference of a file of a batch, numbered from 1: the MsgId by which a bank knows the file, such as
// QF7X…. It is made of the state alone, as an attempt's id is, and has the form of a payout_ref.
func FileRef(batch string, number int) string {
	return reference(filePrefix, sha256.Sum256(fmt.Appendf(nil, "file|%s|%d", batch, number)))
}

// reference returns the beginning of an id as text.
func reference(prefix string, id [sha256.Size]byte) string {
	text := []byte(prefix)
	bits, held := 0, 0
	for _, b := range id {
		bits, held = bits<<8|int(b), held+8
		for held >= 5 && len(text) < len(prefix)+refBody {
			held -= 5
			text = append(text, crockford[bits>>held&31])
		}
		bits &= 1<<held - 1
	}
	return string(text) + checkOf(string(text[len(prefix):]))
}

// ValidPayoutRef reports whether a text has the form of a payout_ref, and its check characters fit.
func ValidPayoutRef(text string) bool { return validReference(refPrefix, text) }

// ValidFileRef reports whether a text has the form of a FileRef, and its check characters fit.
func ValidFileRef(text string) bool { return validReference(filePrefix, text) }

func validReference(prefix, text string) bool {
	body, ok := strings.CutPrefix(text, prefix)
	if !ok || len(body) != refBody+refCheck || strings.Trim(body, crockford) != "" {
		return false
	}
	return checkOf(body[:refBody]) == body[refBody:]
}

// checkOf returns the remainder of a body by refModulus, as two characters.
func checkOf(body string) string {
	n := 0
	for _, c := range []byte(body) {
		n = (n*32 + strings.IndexByte(crockford, c)) % refModulus
	}
	return string([]byte{crockford[n>>5], crockford[n&31]})
}
