package link

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/cli"
	"quittance/internal/citizens"
	"quittance/internal/contact"
)

func needsAgencyAndFile(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return cli.Usage("say whose contacts, and the file: `%s AGENCY FILE`; the agency by slug or id; - is the standard input", cmd.CommandPath())
	}
	return nil
}

// fileErrors collects the faults of a file. Their texts never repeat its values.
type fileErrors struct {
	shown []string
	more  int
}

func (f *fileErrors) add(line int, field, mend string) {
	const most = 20
	if len(f.shown) == most {
		f.more++
		return
	}
	f.shown = append(f.shown, fmt.Sprintf("  line %d, %s: %s", line, field, mend))
}

// err is nil if there are no faults.
func (f *fileErrors) err() error {
	if len(f.shown) == 0 {
		return nil
	}
	text := fmt.Sprintf("the file is refused, nothing changed; faults: %d\n%s", len(f.shown)+f.more, strings.Join(f.shown, "\n"))
	if f.more > 0 {
		text += fmt.Sprintf("\n  and %d more", f.more)
	}
	return errors.New(text)
}

// byteOrderMark begins the files of some spreadsheet programs.
const byteOrderMark = "\ufeff"

var subjectMend = fmt.Sprintf("must be 1 to %d bytes of UTF-8, without control characters, and without spaces at its ends", citizens.MaxSubjectRef)

// readReferences reads a file with one reference on each line. It leaves out empty lines.
func readReferences(in io.Reader) (refs []string, err error) {
	var faults fileErrors
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		ref := strings.TrimSuffix(lines.Text(), "\r")
		if n == 1 {
			ref = strings.TrimPrefix(ref, byteOrderMark)
		}
		if ref == "" {
			continue
		}
		if citizens.CheckSubjectRef(ref) != nil {
			faults.add(n, "subject_ref", subjectMend)
			continue
		}
		refs = append(refs, ref)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the references: %w", err)
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	if len(refs) == 0 {
		return nil, errors.New("the file has no references; write one on each line")
	}
	return refs, nil
}

// The names of the columns of contacts.
const (
	columnSubject = "subject_ref"
	columnPhone   = "phone"
	columnEmail   = "email"
	columnContact = "contact" // a phone number or an e-mail address
)

// readContacts reads a CSV file of verified contacts, see importFormat. All its faults are one
// error, which names lines and fields.
func readContacts(in io.Reader) (contacts []citizens.Contact, err error) {
	buffered := bufio.NewReader(in)
	if mark, _ := buffered.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = buffered.Discard(len(byteOrderMark))
	}
	r := csv.NewReader(buffered)
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	if r.Comma, err = separator(buffered); err != nil {
		return nil, err
	}
	columns := []string{columnSubject, columnContact}
	var faults fileErrors
	for first := true; ; first = false {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if malformed := (*csv.ParseError)(nil); errors.As(err, &malformed) {
			faults.add(malformed.Line, "quotes", "must be closed; write a quote inside of a quoted field twice")
			break // what follows cannot be told apart
		}
		if err != nil {
			return nil, fmt.Errorf("reading the contacts: %w", err)
		}
		line, _ := r.FieldPos(0)
		if named := header(record); first && named != nil {
			if fault := checkHeader(named); fault != "" {
				return nil, fmt.Errorf("line %d: %s", line, fault)
			}
			columns = named
			continue
		}
		contacts = append(contacts, readContact(columns, record, line, &faults)...)
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	if len(contacts) == 0 {
		return nil, errors.New("the file has no contacts; `quittance links import --help` says what it must be like")
	}
	return contacts, nil
}

// separator finds out what separates the fields of the first line: a semicolon, as French
// spreadsheets write, or a comma.
func separator(in *bufio.Reader) (rune, error) {
	begin, err := in.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return 0, fmt.Errorf("reading the contacts: %w", err)
	}
	line, _, _ := strings.Cut(string(begin), "\n")
	if strings.Contains(line, ";") && !strings.Contains(line, ",") {
		return ';', nil
	}
	return ',', nil
}

// header returns the names of the columns if the record has them.
func header(record []string) []string {
	names := make([]string, len(record))
	for i, name := range record {
		names[i] = strings.ToLower(strings.TrimSpace(name))
	}
	if !slices.Contains(names, columnSubject) {
		return nil
	}
	return names
}

func checkHeader(names []string) string {
	seen := map[string]bool{}
	for _, name := range names {
		switch {
		case name != columnSubject && name != columnPhone && name != columnEmail && name != columnContact:
			return "a column has another name; the columns are subject_ref, phone, email and contact"
		case seen[name]:
			return "column " + name + " is there twice"
		}
		seen[name] = true
	}
	if len(seen) < 2 {
		return "a column with the contacts is missing: phone, email or contact"
	}
	return ""
}

// readContact reads the contacts of one line: with columns for both kinds it may have two.
func readContact(columns, record []string, line int, faults *fileErrors) (contacts []citizens.Contact) {
	if len(record) != len(columns) {
		faults.add(line, "fields", fmt.Sprintf("must be %d (%s), not %d", len(columns), strings.Join(columns, ", "), len(record)))
		return nil
	}
	subject, given := "", 0
	for i, value := range record {
		if columns[i] == columnSubject {
			subject = strings.TrimSpace(value)
		}
	}
	if citizens.CheckSubjectRef(subject) != nil {
		faults.add(line, columnSubject, subjectMend)
	}
	for i, value := range record {
		value = strings.TrimSpace(value)
		if columns[i] == columnSubject || value == "" {
			continue
		}
		given++
		address, mend := readAddress(columns[i], value)
		if mend != "" {
			faults.add(line, columns[i], mend)
			continue
		}
		contacts = append(contacts, citizens.Contact{SubjectRef: subject, Address: address})
	}
	if given == 0 {
		faults.add(line, strings.Join(slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == columnSubject }), " or "), "is required")
	}
	return contacts
}

// readAddress returns the address of a column, or how to mend its value.
func readAddress(column, value string) (a contact.Address, mend string) {
	kind := contact.Phone
	if column == columnEmail || column == columnContact && strings.Contains(value, "@") {
		kind = contact.Email
	}
	a, err := contact.Parse(kind, value)
	switch {
	case err == nil:
		return a, ""
	case !utf8.ValidString(value):
		return a, "must be in UTF-8"
	case kind == contact.Email:
		return a, "must be an e-mail address, such as name@example.org"
	}
	return a, "must be a mobile number of Congo, such as +242 06 600 00 01"
}
