package lines

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// document is a part of a workbook that is read element by element.
type document struct {
	xml  *xml.Decoder
	gate *unpackGate
	// main says that the part is SpreadsheetML. Its elements of other namespaces are left out.
	main bool
	path []string // names of the open elements
	done bool     // the root has ended
}

// mainNamespaces are those of SpreadsheetML, in its transitional and its strict form.
var mainNamespaces = []string{"http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main"}

// open opens a part. Its bytes count on what the workbook may have unpacked.
func (b *workbook) open(part string, main bool) (*document, io.Closer, error) {
	f := b.parts[strings.ToLower(part)]
	if f == nil {
		return nil, nil, fmt.Errorf("a part is missing: %w", errBook)
	}
	in, err := f.Open()
	if err != nil {
		return nil, nil, err
	}
	gate := &unpackGate{Reader: in, book: b}
	return &document{xml: xml.NewDecoder(gate), gate: gate, main: main}, in, nil
}

// Limits of XML, so that memory does not grow with what is unpacked. A cell has at most 32,767 characters.
const (
	maxToken = 1 << 20 // bytes
	maxText  = 1 << 18 // bytes of the text of a cell
	maxDepth = 64
)

// unpackGate counts what is unpacked, in all and of one token.
type unpackGate struct {
	io.Reader

	book  *workbook
	token int
}

func (g *unpackGate) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	g.token += n
	switch g.book.unpacked += int64(n); {
	case g.book.unpacked > maxUnpacked:
		return 0, errExpands
	case g.token > maxToken:
		return 0, fmt.Errorf("a long token: %w", errBook)
	}
	return n, err
}

// each calls visit for each element of a part. A visitor may read on to the end of the element. It reads to the end of the
// part, where the archive's sum is checked.
func (b *workbook) each(part string, main bool, visit func(*document, *xml.StartElement) error) error {
	d, in, err := b.open(part, main)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only: what is wrong with the part was told by Read
	for {
		token, err := d.token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if e, ok := token.(xml.StartElement); ok {
			if err := visit(d, &e); err != nil {
				return err
			}
		}
	}
}

// token returns the next token. It refuses a document type, attributes that are there twice and a second root, which
// readers take differently. The error is io.EOF at the end of the part.
func (d *document) token() (xml.Token, error) {
	for {
		token, err := d.raw()
		if err != nil {
			return nil, err
		}
		if t, ok := token.(xml.StartElement); ok {
			for i, a := range t.Attr {
				if slices.ContainsFunc(t.Attr[:i], func(other xml.Attr) bool { return other.Name == a.Name }) {
					return nil, fmt.Errorf("an attribute that is there twice: %w", errBook)
				}
			}
			if d.main && !slices.Contains(mainNamespaces, t.Name.Space) {
				if len(d.path) == 1 {
					return nil, fmt.Errorf("another root: %w", errBook)
				}
				if err := d.skip(); err != nil {
					return nil, err
				}
				continue
			}
		}
		return token, nil
	}
}

// raw returns the next token of any namespace.
func (d *document) raw() (xml.Token, error) {
	d.gate.token = 0
	token, err := d.xml.Token()
	if errors.Is(err, io.EOF) && !d.done {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case xml.Directive:
		return nil, fmt.Errorf("a document type: %w", errBook)
	case xml.EndElement:
		d.path = d.path[:len(d.path)-1]
		d.done = len(d.path) == 0
	case xml.StartElement:
		if d.done || len(d.path) == maxDepth {
			return nil, fmt.Errorf("two roots, or too deep: %w", errBook)
		}
		d.path = append(d.path, t.Name.Local)
	}
	return token, nil
}

// skip reads to the end of the present element.
func (d *document) skip() error {
	for depth := len(d.path); len(d.path) >= depth; {
		if _, err := d.raw(); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// in reports whether the present element is a child of another one.
func (d *document) in(parent string) bool {
	return len(d.path) > 1 && d.path[len(d.path)-2] == parent
}

// text reads the text in the present element to its end: that of t, and of t in r. It leaves out readings (rPh). Elements
// that it does not know could have text that a person sees, and are refused.
func (d *document) text() (string, error) {
	var text joined
	for depth := len(d.path); len(d.path) >= depth; {
		token, err := d.token()
		if err != nil {
			return "", unexpected(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch {
			case t.Name.Local == "t" && (len(d.path) == depth+1 || len(d.path) == depth+2 && d.in("r")):
				if err := d.characters(&text); err != nil {
					return "", err
				}
			case t.Name.Local == "r" && len(d.path) == depth+1:
			case t.Name.Local == "rPh", t.Name.Local == "rPr", t.Name.Local == "phoneticPr":
				if err := d.skip(); err != nil {
					return "", err
				}
			default:
				return "", fmt.Errorf("an element in a text: %w", errBook)
			}
		}
	}
	return text.String(), nil
}

// characters adds the characters of the present element, which has no others in it, and ends with it.
func (d *document) characters(text *joined) error {
	for depth := len(d.path); len(d.path) >= depth; {
		token, err := d.token()
		if err != nil {
			return unexpected(err)
		}
		switch t := token.(type) {
		case xml.CharData:
			if text.add(t); text.size() > maxText {
				return fmt.Errorf("a long text: %w", errBook)
			}
		case xml.StartElement:
			return fmt.Errorf("an element in a text: %w", errBook)
		}
	}
	return nil
}

// joined is a text that mostly has one part, and then needs one allocation.
type joined struct {
	first string
	more  []byte
}

func (j *joined) add(part []byte) {
	switch {
	case j.more != nil:
		j.more = append(j.more, part...)
	case j.first != "":
		j.more = append([]byte(j.first), part...)
	default:
		j.first = string(part)
	}
}

func (j *joined) size() int { return max(len(j.first), len(j.more)) }

// String returns the whole text.
func (j *joined) String() string {
	if j.more != nil {
		return string(j.more)
	}
	return j.first
}

// unexpected turns the end of a part in an element into what it is.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// attribute returns an attribute without a namespace; empty if it is absent.
func attribute(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}
