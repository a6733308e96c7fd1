// Package origin says who wrote a record of Kafka, and proves it (docs/design/rights.md, "Commands and
// bodies"). Rights at Kafka say who may write a topic. A topic with several writers needs more: each has a
// key of its own, and the reader knows all of them.
//
// A record names its writer in the header "from" and has in the header "mac" the MAC of its topic,
// partition, key, writer and value. A record that is copied to another place is therefore not authentic.
// Other headers are not authenticated.
package origin

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of a signed record.
const (
	HeaderFrom = "from"
	HeaderMAC  = "mac"
)

// Errors of Verify, for errors.Is.
var (
	// ErrUnsigned says that a record names no writer and has no MAC.
	ErrUnsigned = errors.New("unsigned: the record does not say who wrote it")
	// ErrForged says that whom the record names has not written it, or not there.
	ErrForged = errors.New("forged: whom the record names has not written it")
)

// MACs makes and verifies MACs with the key of one writer, for concurrent callers. *secret.MACs of
// internal/secret implements it.
type MACs interface {
	// Append appends the MAC of data to dst.
	Append(dst, data []byte) []byte
	// Verify reports whether mac is the MAC of data.
	Verify(data, mac []byte) bool
}

// Signer signs the records of one writer. It is safe for concurrent use.
type Signer struct {
	from []byte
	macs MACs
}

// NewSigner returns the signer of a writer. from is its name, which Verifier knows.
func NewSigner(from string, macs MACs) *Signer { return &Signer{[]byte(from), macs} }

// Sign adds the headers to a record whose full topic, partition, key and value are final.
func (s *Signer) Sign(r *kgo.Record) { s.sign(r, placed) }

// SignKeyed is Sign for a record whose partition its client chooses by the key. A copy in another partition is
// authentic, too.
func (s *Signer) SignKeyed(r *kgo.Record) { s.sign(r, keyed) }

func (s *Signer) sign(r *kgo.Record, of binding) {
	b := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer buffers.Put(b)
	*b = message((*b)[:0], r, s.from, of)
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: HeaderFrom, Value: s.from}, kgo.RecordHeader{Key: HeaderMAC, Value: s.macs.Append(nil, *b)})
}

// Verifier has the keys of all writers by their names.
type Verifier map[string]MACs

// Verify returns who wrote the record. With ErrForged, from is the known writer that the record names, and
// empty if it names no known one.
func (v Verifier) Verify(r *kgo.Record) (from string, err error) { return v.verify(r, placed) }

// VerifyKeyed is Verify for records of SignKeyed.
func (v Verifier) VerifyKeyed(r *kgo.Record) (from string, err error) { return v.verify(r, keyed) }

func (v Verifier) verify(r *kgo.Record, of binding) (from string, err error) {
	var name, mac []byte
	names, sums := 0, 0
	for _, h := range r.Headers {
		switch h.Key {
		case HeaderFrom:
			name, names = h.Value, names+1
		case HeaderMAC:
			mac, sums = h.Value, sums+1
		}
	}
	if names+sums == 0 {
		return "", ErrUnsigned
	}
	macs, known := v[string(name)]
	switch {
	case !known:
		return "", ErrForged
	case names != 1 || sums != 1:
		return string(name), ErrForged
	}
	b := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer buffers.Put(b)
	*b = message((*b)[:0], r, name, of)
	if !macs.Verify(*b, mac) {
		return string(name), ErrForged
	}
	return string(name), nil
}

// buffers hold the bytes of a message while its MAC is computed.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// binding says whether a MAC binds a record to its partition.
type binding string

const (
	placed binding = "record\x00"
	keyed  binding = "keyed record\x00"
)

// message appends what the MAC covers. Each part but the partition has its length before it, so that no
// other record has the same bytes.
func message(dst []byte, r *kgo.Record, from []byte, of binding) []byte {
	dst = append(dst, of...)
	dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(r.Topic))), r.Topic...) //nolint:gosec // at most 249
	if of == placed {
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Partition)) //nolint:gosec // as it is
	}
	for _, part := range [...][]byte{r.Key, from, r.Value} {
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(part))), part...) //nolint:gosec // a record is smaller
	}
	return dst
}
