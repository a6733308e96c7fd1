package lines

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// The encodings of CSV.
const (
	utf8Name    = "UTF-8"
	utf16Name   = "UTF-16"
	windowsName = "Windows-1252"
)

// maxRow bounds a row in bytes. All texts of a line together are far shorter.
const maxRow = 64 << 10

// errLongRow says that a row is longer than maxRow.
var errLongRow = errors.New("a row is too long")

// readCSV reads delimited text (RFC 4180), separated by a comma, a semicolon or a tab.
func (r *reading) readCSV(src *io.SectionReader) error {
	text, err := r.decoded(src)
	if err != nil {
		return err
	}
	in := &rowGate{src: text, left: 2 * maxRow}
	buffered := bufio.NewReaderSize(in, maxRow)
	rows := csv.NewReader(buffered)
	if rows.Comma, err = r.separator(buffered); err != nil {
		return err
	}
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	var cells []cell
	for {
		in.left = 2 * maxRow
		row, err := rows.Read()
		var syntax *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &syntax):
			return r.stop(Fault{Kind: FaultQuote, Row: syntax.StartLine})
		case errors.Is(err, errLongRow):
			return r.stop(Fault{Kind: FaultQuote, Row: r.row + 1})
		case err != nil:
			return err
		}
		line, _ := rows.FieldPos(0)
		cells = cells[:0]
		for i, text := range row {
			if text != "" {
				cells = append(cells, cell{column: i, text: text})
			}
		}
		if r.headers != nil && len(row) < len(r.headers) && len(cells) > 0 {
			r.fault(Fault{Kind: FaultWidth, Row: line})
		}
		if err := r.next(line, cells); err != nil {
			return err
		}
		if len(cells) > 0 {
			r.row = line + breaks(row)
		}
	}
}

// breaks returns the number of line breaks in the cells of a row.
func breaks(row []string) (n int) {
	for _, text := range row {
		n += strings.Count(text, "\n")
	}
	return n
}

// separator finds the character that separates the headers: the one by which most of them are known.
func (r *reading) separator(in *bufio.Reader) (rune, error) {
	head, err := in.Peek(maxRow / 4)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	best, most := ',', 0
	for _, candidate := range ",;\t" {
		rows := csv.NewReader(bytes.NewReader(first))
		rows.Comma = candidate
		row, _ := rows.Read() // a fault of the quotation marks is told with its place later
		n := 0
		for _, text := range row {
			if known(text) != "" {
				n++
			}
		}
		if n > most {
			best, most = candidate, n
		}
	}
	return best, nil
}

// rowGate ends a file when a row takes more than what is left.
type rowGate struct {
	src  io.Reader
	left int
}

func (g *rowGate) Read(p []byte) (int, error) {
	if g.left <= 0 {
		return 0, errLongRow
	}
	n, err := g.src.Read(p[:min(len(p), g.left)])
	g.left -= n
	return n, err
}

// decoded returns the file in UTF-8, without a byte order mark.
func (r *reading) decoded(src *io.SectionReader) (io.Reader, error) {
	head := make([]byte, 3)
	n, err := src.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if head = head[:n]; bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		r.file.Encoding = utf16Name
		return transform.NewReader(src, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()), nil
	}
	valid, seen, err := survey(io.NewSectionReader(src, 0, src.Size()))
	switch {
	case err != nil:
		return nil, err
	case seen[0]:
		return nil, r.stop(Fault{Kind: FaultEncoding}) // UTF-16 without its mark, or no text
	case valid:
		r.file.Encoding = utf8Name
		if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
			_, err = src.Seek(int64(len(head)), io.SeekStart)
		}
		return src, err
	case ambiguous(seen):
		return nil, r.stop(Fault{Kind: FaultEncoding})
	}
	r.file.Encoding = windowsName
	return charmap.Windows1252.NewDecoder().Reader(src), nil
}

// survey reports whether a file is UTF-8, and which bytes it has.
func survey(src io.Reader) (valid bool, seen [256]bool, err error) {
	all := io.TeeReader(src, byteSet{&seen})
	_, err = io.Copy(io.Discard, transform.NewReader(all, encoding.UTF8Validator))
	if !errors.Is(err, encoding.ErrInvalidUTF8) {
		return err == nil, seen, err
	}
	_, err = io.Copy(io.Discard, all)
	return false, seen, err
}

// byteSet notes which bytes are written to it.
type byteSet struct{ seen *[256]bool }

func (s byteSet) Write(p []byte) (int, error) {
	for _, b := range p {
		s.seen[b] = true
	}
	return len(p), nil
}

// ambiguous reports whether a file that is not UTF-8 could be something else than Windows-1252. Files of a Macintosh or of
// DOS have their accented letters between 0x80 and 0xBF, where Windows-1252 has signs. So only letters, the no-break
// space, the degree sign and French quotation marks are taken.
func ambiguous(seen [256]bool) bool {
	for b := utf8.RuneSelf; b < len(seen); b++ {
		if seen[b] && (b < 0xc0 || b == 0xd7 || b == 0xf7) && !strings.ContainsRune("\u00a0«°»", rune(b)) {
			return true
		}
	}
	return false
}
