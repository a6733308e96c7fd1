package erp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"
	"unicode/utf8"

	"quittance/internal/call"
	"quittance/internal/form"
	"quittance/internal/registry"
)

// Limits of an answer of GET /disbursements. It is one answer without pages, because a batch
// that is read in parts while the ERP changes it is no batch.
const (
	LinesTimeout   = 120 * time.Second // of the whole call, with the body
	MaxLinesAnswer = 64 << 20          // bytes
	MaxLines       = 100_000
	// MaxLine is the most bytes of one item as JSON. The longest line that keeps the contract
	// has less than 100 KiB, even if each character is written as \uXXXX.
	MaxLine = 128 << 10
)

// LineItem is an item of an answer of GET /disbursements.
type LineItem struct {
	// Line is what the item says. If there are Faults, only Ref is usable, and only if it is
	// not empty.
	Line
	// Position of the item in items, from 0.
	Position int
	// Faults are all faults of the item. Their fields and messages begin with its place, such
	// as items[17].amount_minor, and repeat no value of it.
	Faults []form.Fault
}

// Disbursements asks for the lines of a batch, checks each and passes it to take, in the
// ERP's order. It holds one item at a time. When the Result has a Fault, the answer as a
// whole is not usable, and what take has got counts for nothing; that is so, too, when a
// single item has faults, because a batch is never paid in part. An error is that of take,
// after which nothing more is read.
func (c *Client) Disbursements(ctx context.Context, s registry.ERPSettings, batchRef string, take func(LineItem) error) (call.Result, error) {
	h, ok := header(s)
	if !ok {
		return call.Result{Fault: call.FaultUnusable}, nil
	}
	r, err := c.to(s).Stream(ctx, address(s, "/disbursements?batch_ref="+url.QueryEscape(batchRef)), h, MaxLinesAnswer, LinesTimeout, func(body io.Reader) error {
		return ReadDisbursements(body, take)
	})
	var whole invalid
	if errors.As(err, &whole) {
		return call.Result{Fault: FaultInvalid, Detail: whole.Error(), Duration: r.Duration}, nil
	}
	return r, err
}

// ReadDisbursements reads the body of an answer of GET /disbursements, like
// Client.Disbursements. The text of an error that is not take's is a detail of FaultInvalid.
func ReadDisbursements(body io.Reader, take func(LineItem) error) error {
	s := &lineStream{rationed: rationed{from: body}, take: take, seen: map[[16]byte]int{}}
	start := bufio.NewReaderSize(&s.rationed, 512)
	s.allow()
	if err := begins(start); err != nil {
		return err
	}
	s.json = json.NewDecoder(start)
	s.json.UseNumber()
	if err := s.object(); err != nil {
		return err
	}
	s.allow()
	if _, err := s.json.Token(); !errors.Is(err, io.EOF) {
		return s.fault(err)
	}
	if !s.found {
		return invalid(InvalidItems)
	}
	return nil
}

// begins skips a byte order mark and recognises what is no JSON at all.
func begins(r *bufio.Reader) error {
	if mark, _ := r.Peek(3); bytes.Equal(mark, []byte("\xEF\xBB\xBF")) {
		_, _ = r.Discard(3)
	}
	for {
		next, err := r.Peek(2)
		switch {
		case len(next) == 0 && err != nil:
			return invalid(InvalidJSON)
		case next[0] == ' ' || next[0] == '\t' || next[0] == '\r' || next[0] == '\n':
			_, _ = r.Discard(1)
		case next[0] == '<':
			return invalid(InvalidHTML)
		case bytes.Equal(next, []byte("\x1f\x8b")):
			return invalid(InvalidCompressed)
		default:
			return nil
		}
	}
}

// lineStream reads {"items": […]} item by item.
type lineStream struct {
	rationed
	json  *json.Decoder
	take  func(LineItem) error
	found bool             // the member items
	n     int              // items so far
	seen  map[[16]byte]int // position of each line_ref, by the beginning of its SHA-256
}

// object reads the whole object. Members beside items are skipped, because ERPs may send
// more.
func (s *lineStream) object() error {
	if open, err := s.token(); err != nil || open != json.Delim('{') {
		return cmpInvalid(err, InvalidItems)
	}
	for {
		name, err := s.token()
		switch {
		case err != nil:
			return err
		case name == json.Delim('}'):
			return nil
		case name != "items":
			err = s.skip()
		case s.found:
			return invalid(InvalidItems)
		default:
			s.found, err = true, s.items()
		}
		if err != nil {
			return err
		}
	}
}

func (s *lineStream) items() error {
	if open, err := s.token(); err != nil || open != json.Delim('[') {
		return cmpInvalid(err, InvalidItems)
	}
	for {
		s.allow()
		if !s.json.More() {
			_, err := s.token() // the end of the list, or what stands in its place
			return err
		}
		var raw json.RawMessage
		if err := s.json.Decode(&raw); err != nil {
			return s.fault(err)
		}
		switch {
		case s.n == MaxLines:
			return invalid(InvalidTooMany)
		case len(raw) > MaxLine:
			return invalid(InvalidItemSize)
		case !utf8.Valid(raw):
			return invalid(InvalidUTF8)
		}
		if err := s.take(s.item(raw)); err != nil {
			return err
		}
		s.n++
	}
}

func (s *lineStream) item(raw []byte) LineItem {
	place := fmt.Sprintf("items[%d]", s.n)
	fields, err := form.Decode(raw)
	if err != nil {
		return LineItem{Position: s.n, Faults: []form.Fault{{Field: place, Rule: "type", Message: place + " must be an object that has no field twice."}}}
	}
	f := form.OfElement(place, fields)
	l, ref := parseLine(f)
	ignoreOthers(f)
	if ref != "" {
		sum := sha256.Sum256([]byte(ref))
		key := [16]byte(sum[:])
		if first, ok := s.seen[key]; ok {
			f.Fault("line_ref", "duplicate", fmt.Sprintf("must be unique in the answer; items[%d] has the same", first))
		} else {
			s.seen[key] = s.n
		}
	}
	return LineItem{Line: l, Position: s.n, Faults: f.Faults()}
}

// maxDepth is how deep values beside items may be. The decoder keeps each open bracket, so a body of
// brackets alone would take eight times its length.
const maxDepth = 64

// skip reads one value of any kind.
func (s *lineStream) skip() error {
	for depth := 0; ; {
		t, err := s.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return invalid(InvalidJSON)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// token reads the next token. Errors are those of fault.
func (s *lineStream) token() (json.Token, error) {
	s.allow()
	t, err := s.json.Token()
	if err != nil {
		return nil, s.fault(err)
	}
	return t, nil
}

// fault returns the error of a body that cannot be read on; err is that of the decoder, or
// nil where the body should have ended. An error of the connection stays as it is.
func (s *lineStream) fault(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, errRation):
		return invalid(InvalidItemSize)
	case s.broken && !errors.As(err, &syntax):
		return err
	}
	return invalid(InvalidJSON)
}

// cmpInvalid returns err, or an invalid body if there is none.
func cmpInvalid(err error, detail string) error {
	if err != nil {
		return err
	}
	return invalid(detail)
}

// errRation ends the reading of a value that is too long.
var errRation = errors.New("a value is too long")

// rationed is a reader that gives no more than a ration before allow is called again. It
// bounds what the decoder holds of one value.
type rationed struct {
	from   io.Reader
	left   int
	broken bool // from has ended with an error
}

// allow gives the ration of the next value: its bytes, and what the decoder reads ahead,
// which is no more than its buffer, twice as long as the longest value.
func (r *rationed) allow() { r.left = 4 * MaxLine }

func (r *rationed) Read(p []byte) (n int, err error) {
	if r.left <= 0 {
		return 0, errRation
	}
	n, err = r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	if err != nil && err != io.EOF {
		r.broken = true
	}
	return n, err
}
