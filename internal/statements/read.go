package statements

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"quittance/money"
)

// MaxLines bounds the lines of a file, and with them the memory for their ids.
const MaxLines = 10_000_000

// Reader reads the files of a profile. It reports faults through the session and returns
// only errors of reading and of the visitor.
type reader func(*reading) error

// readers has a reader for each profile but csv, whose layout the account declares.
var readers = map[string]reader{"camt.053": readCAMT}

func init() {
	for name, layout := range layouts {
		readers[name] = layout.read
	}
}

// ProfileCSV is the profile whose columns the account declares.
const ProfileCSV = "csv"

// Profiles lists all profiles, in alphabetical order.
func Profiles() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(readers)), ProfileCSV)))
}

// NamesAccount reports whether the files of a profile name their account, so that a file of
// another account can be refused. columns are those of the profile csv.
func NamesAccount(profile string, columns *Layout) bool {
	if profile == ProfileCSV {
		return columns != nil && columns.Account > 0
	}
	layout, ok := layouts[profile]
	return !ok || layout.Account > 0
}

// ErrProfile says that no reader has the profile, or that its configuration is wrong.
var ErrProfile = errors.New("unusable profile of an account")

// Read reads a file of an account by the account's profile. It calls visit, if not nil, for
// each line; the line is valid until visit returns. Because a fault may come later, a
// visitor's work counts only if the returned file is not refused. The error is ErrProfile,
// or comes from src or visit; faults of the file are in the File.
func Read(src io.Reader, account Account, visit func(*Line) error) (*File, error) {
	read, ok := readers[account.Profile]
	if account.Profile == ProfileCSV && account.Columns != nil {
		if err := account.Columns.Validate(); err != nil {
			return nil, err
		}
		read, ok = account.Columns.read, true
	}
	currency, known := money.Lookup(account.Currency)
	switch {
	case !ok && account.Profile == ProfileCSV:
		return nil, fmt.Errorf("%w: account %s has no columns; declare them", ErrProfile, account.Code)
	case !ok:
		return nil, fmt.Errorf("%w: account %s has the profile %q; use one of %v", ErrProfile, account.Code, account.Profile, Profiles())
	case !known:
		return nil, fmt.Errorf("%w: account %s has the currency %q", ErrProfile, account.Code, account.Currency)
	}
	digest := sha256.New()
	bytes := &counter{in: io.TeeReader(src, digest)}
	r := &reading{
		account: account, currency: currency, visit: visit, seen: map[[16]byte]uint32{},
		gate: &gate{in: transform.NewReader(bytes, unicode.BOMOverride(encoding.Nop.NewDecoder()))},
		file: &File{Profile: account.Profile, Skipped: map[string]int{}},
	}
	err := read(r)
	if errors.Is(err, errStop) {
		err = nil // the fault is in the file
	}
	if err == nil {
		_, err = io.Copy(io.Discard, bytes) // the digest is of the whole file
	}
	if err != nil {
		return nil, fmt.Errorf("reading a %s file: %w", account.Profile, err)
	}
	if len(r.file.Statements) == 0 && len(r.file.Faults) == 0 {
		r.fault(FaultEmpty, Position{1, 1}, "", "The file has no statement.", "Import the file of a day with a statement.")
	}
	r.file.Size = bytes.n
	digest.Sum(r.file.Digest[:0])
	return r.file, nil
}

// errStop ends the reading of a file after a fault that makes the rest unreadable.
var errStop = errors.New("unreadable")

type counter struct {
	in io.Reader
	n  int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// gate stops a reader that wants more than limit bytes for one element or row, so that the
// memory stays bounded.
type gate struct {
	in    io.Reader
	n     int64 // bytes given
	limit int64
	err   error // of the source
}

var errTooLarge = errors.New("an element or a row is too large")

func (g *gate) Read(p []byte) (int, error) {
	if g.n >= g.limit {
		return 0, errTooLarge
	}
	n, err := g.in.Read(p)
	g.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		g.err = err
	}
	return n, err
}

// reading is the state of one Read.
type reading struct {
	account  Account
	currency money.Currency
	visit    func(*Line) error
	gate     *gate
	file     *File
	seen     map[[16]byte]uint32 // occurrences by the hash of an id
	content  hash.Hash           // of the present statement
	told     map[string]bool     // faults that are told once in a file
}

func (r *reading) fault(kind FaultKind, at Position, field, detail, mend string) {
	at.Line, at.Column = max(at.Line, 1), max(at.Column, 1)
	r.file.add(Fault{Kind: kind, Position: at, Field: field, Detail: detail, Mend: mend})
}

// faultOnce notes a fault that every line of a wrong file repeats.
func (r *reading) faultOnce(kind FaultKind, at Position, field, detail, mend string) {
	if key := string(kind) + detail; !r.told[key] {
		if r.told == nil {
			r.told = map[string]bool{}
		}
		r.told[key] = true
		r.fault(kind, at, field, detail, mend)
	}
}

// begin opens a statement.
func (r *reading) begin(at Position) *Statement {
	r.file.Statements = append(r.file.Statements, Statement{Page: 1, Last: true, Source: at})
	r.content = sha256.New()
	return &r.file.Statements[len(r.file.Statements)-1]
}

// line completes a line of the statement, counts it and hands it to the visitor. id is the
// unique id of the operator or the bank; empty if there is none.
func (r *reading) line(s *Statement, l *Line, id string) error {
	s.Lines++
	r.file.Lines++
	if r.file.Lines > MaxLines {
		r.fault(FaultSyntax, l.Source, "", fmt.Sprintf("The file has more than %d lines.", MaxLines), "Import it in parts.")
		return errStop
	}
	if r.account.late(l.Day) {
		r.fault(FaultField, l.Source, "", "The line is dated "+l.Day+", which is after tomorrow.", mendLate)
	}
	l.Account, l.Statement, l.Number, l.Occurrence = r.account.Code, s.ID, s.Lines, 1
	if id == "" {
		s.Positional = true
		id = s.ID + "/" + strconv.Itoa(s.Page) + "/" + strconv.Itoa(s.Lines)
	}
	l.ID = r.account.Code + "/" + id
	name := l.ID
	if l.Scope != "" || s.Positional && strings.HasPrefix(id, s.ID+"/") { // unique in its statement; the next one may have the same id
		name += "|" + strconv.Itoa(len(r.file.Statements))
	}
	sum := sha256.Sum256([]byte(name))
	key := [16]byte(sum[:16])
	if r.seen[key]++; r.seen[key] > 1 {
		l.Occurrence = int(r.seen[key])
		l.ID += repetition(l.Occurrence)
		if !r.another(name, l.entry) {
			r.fault(FaultDuplicateLine, l.Source, "", "The file has the id of this line already.", "The line is imported as a repetition and becomes a break; ask who sent the file which line is wrong.")
		}
	} else {
		r.another(name, l.entry)
	}
	var ok bool
	if s.Net, ok = add(s.Net, l.Net()); !ok {
		r.fault(FaultAmount, l.Source, "", "The sum of the lines is too large.", "Import the file in parts.")
		return errStop
	}
	if s.From == "" || l.Day < s.From {
		s.From = l.Day
	}
	if l.Day > s.To {
		s.To = l.Day
	}
	s.Tail, s.TailAt = l.unique(), l.At
	r.digest(l)
	if r.visit == nil {
		return nil
	}
	return r.visit(l)
}

// another reports whether a line has a reference of its entry that no line of the same id has had. A bank may give one id of its own to several
// entries, such as those of one order.
func (r *reading) another(name, entry string) bool {
	if entry == "" {
		return false
	}
	sum := sha256.Sum256([]byte(name + "|" + entry))
	key := [16]byte(sum[:16])
	r.seen[key]++
	return r.seen[key] == 1
}

// late reports whether a day is after the last one that the account may have. Such a line would block the account: the
// next statements would begin on days that are covered.
func (a *Account) late(day string) bool { return a.Latest != "" && day > a.Latest }

const mendLate = "Ask who sent the file for the right date; the day and the month may be exchanged, or the year is wrong."

// digest adds the line to the digest of its statement. The digest has the id without the statement's, as earlier
// releases wrote it: the same statement in another file is still the same.
func (r *reading) digest(l *Line) {
	b := make([]byte, 0, 256)
	for _, text := range []string{l.Unscoped(), string(l.Kind), l.Day, l.Currency, l.OperatorRef, l.PaymentRef, l.NoticeRef, l.Batch} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.AppendVarint(binary.AppendVarint(b, l.Amount), l.Fee)
	if !l.At.IsZero() {
		b = binary.AppendVarint(b, l.At.Unix())
	}
	_, _ = r.content.Write(b)
}

// end closes a statement: it checks the balance and takes the digest.
func (r *reading) end(s *Statement) {
	b := binary.AppendVarint(binary.AppendVarint(nil, s.Opening), s.Closing)
	_, _ = r.content.Write(append(b, s.ID...))
	r.content.Sum(s.Digest[:0])
	if !s.Balanced {
		return
	}
	if closing, ok := add(s.Opening, s.Net); !ok || closing != s.Closing {
		r.fault(FaultBalance, s.Source, "", fmt.Sprintf("The opening balance %d and the lines %d are not the closing balance %d, in minor units.", s.Opening, s.Net, s.Closing),
			"Ask the bank for the complete statement: a line is missing, doubled or changed.")
	}
}
