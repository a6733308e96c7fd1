package lines

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of a workbook (docs/design/disbursement-lines.md, "XLSX").
const (
	maxUnpacked  = 256 << 20
	maxDirectory = 2 << 20  // bytes that are read to find the parts of the archive
	maxShared    = 64 << 20 // bytes of the table of texts
	maxDeclared  = 1 << 12  // sheets, references and formats of numbers
	maxName      = 1 << 12  // bytes of the text of one of them
	maxStyles    = 1 << 16  // of cells
)

var (
	// errBook says that a workbook is not one, or that two readers could read it differently.
	errBook = errors.New("not a workbook")
	// errOther says that an archive is another document than XLSX.
	errOther = errors.New("another document")
	// errExpands says that a workbook is larger than maxUnpacked.
	errExpands = errors.New("the workbook is too large unpacked")
)

// workbook is an opened XLSX (ECMA-376). The standard library reads it: the libraries for workbooks that stream rows hide
// formulas, types, formats, hidden rows and merged cells, which is what must be refused, or load a sheet whole.
type workbook struct {
	parts    map[string]*zip.File
	unpacked int64 // bytes
	sheets   []sheet
	shared   []string
	formats  []cellKind // by the style of a cell
}

// sheet is a sheet of a workbook.
type sheet struct {
	name   string
	hidden bool
	part   string // empty of a sheet without cells, such as a chart
}

// readXLSX reads the sheet with the lines, and refuses what a person who looks at the workbook may not see.
func (r *reading) readXLSX(src io.ReaderAt, size int64) error {
	gate := &readGate{ReaderAt: src, left: maxDirectory}
	err := r.readSheets(gate, size)
	switch {
	case err == nil, errors.Is(err, errStop):
		return err
	case gate.err != nil:
		return gate.err
	case errors.Is(err, errExpands):
		return r.stop(Fault{Kind: FaultExpands, Want: strconv.Itoa(maxUnpacked >> 20)})
	case errors.Is(err, errOther):
		return r.stop(Fault{Kind: FaultOther})
	}
	return r.stop(Fault{Kind: FaultUnreadable})
}

func (r *reading) readSheets(src *readGate, size int64) error {
	b, err := openBook(src, size)
	if err != nil {
		return err
	}
	found := false
	for _, s := range b.sheets {
		if s.hidden {
			r.fault(Fault{Kind: FaultHiddenSheet, Cell: s.name})
			continue
		}
		in := sheetReading{reading: r, workbook: b, sheet: s}
		switch {
		case strings.EqualFold(s.name, instructionsSheet):
			in.use = useInstructions
		case found:
			in.use = useNothing
		}
		if err := in.read(); err != nil {
			return err
		}
		found = found || in.use == useLines && in.filled
	}
	return nil
}

// openBook finds the parts of a workbook, and reads all but the sheets.
func openBook(src *readGate, size int64) (*workbook, error) {
	archive, err := zip.NewReader(src, size)
	if err != nil {
		return nil, err
	}
	src.left = 2 * size // each part is read once, and parts may not share their bytes many times
	b := &workbook{parts: map[string]*zip.File{}}
	for _, f := range archive.File {
		name := strings.ToLower(f.Name)
		if b.parts[name] != nil {
			return nil, fmt.Errorf("a part that is there twice: %w", errBook)
		}
		b.parts[name] = f
	}
	if b.parts["_rels/.rels"] == nil {
		return nil, errOther
	}
	root, err := b.relations("")
	if err != nil {
		return nil, err
	}
	for _, to := range root {
		switch {
		case to.kind != "officeDocument":
		case path.Ext(to.part) != ".xml":
			return nil, errOther // a binary workbook
		default:
			return b, b.readBook(to.part)
		}
	}
	return nil, errOther
}

// readGate bounds what is read of a file, and keeps an error of the file itself.
type readGate struct {
	io.ReaderAt

	left int64
	err  error
}

func (g *readGate) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 {
		return 0, fmt.Errorf("a part before the file: %w", errBook) // as the list of parts says
	}
	if g.left -= int64(len(p)); g.left < 0 {
		return 0, errExpands
	}
	n, err := g.ReaderAt.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		g.err = err
	}
	return n, err
}

// relation is a part to which another one refers.
type relation struct{ kind, part string }

// relations returns the parts to which a part refers, by the id of the reference.
func (b *workbook) relations(part string) (map[string]relation, error) {
	folder, name := path.Split(part)
	out := map[string]relation{}
	err := b.each(path.Join(folder, "_rels", name+".rels"), false, func(_ *document, e *xml.StartElement) error {
		target := attribute(e, "Target")
		if e.Name.Local != "Relationship" || attribute(e, "TargetMode") == "External" {
			return nil
		}
		if !strings.HasPrefix(target, "/") {
			target = path.Join(folder, target)
		}
		id, to := attribute(e, "Id"), relation{path.Base(attribute(e, "Type")), strings.TrimPrefix(path.Clean(target), "/")}
		if _, twice := out[id]; twice {
			return fmt.Errorf("a reference that is there twice: %w", errBook)
		}
		if out[id] = to; len(out) > maxDeclared || len(id)+len(target) > maxName {
			return fmt.Errorf("too many references: %w", errBook)
		}
		return nil
	})
	return out, err
}

// readBook reads the list of sheets, the shared texts and the styles.
func (b *workbook) readBook(part string) error {
	refers, err := b.relations(part)
	if err != nil {
		return err
	}
	err = b.each(part, true, func(d *document, e *xml.StartElement) error {
		if e.Name.Local != "sheet" || !d.in("sheets") {
			return nil
		}
		to := relation{}
		for _, a := range e.Attr {
			if a.Name.Local == "id" && a.Name.Space != "" {
				to = refers[a.Value]
			}
		}
		s := sheet{name: attribute(e, "name"), hidden: !slices.Contains([]string{"", "visible"}, attribute(e, "state"))}
		if to.kind == "worksheet" {
			s.part = to.part
		}
		if b.sheets = append(b.sheets, s); len(b.sheets) > maxDeclared || len(s.name) > maxName {
			return fmt.Errorf("too many sheets: %w", errBook)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(b.sheets) == 0 {
		return fmt.Errorf("a workbook without sheets: %w", errBook)
	}
	for _, to := range refers {
		switch to.kind {
		case "sharedStrings":
			err = errors.Join(err, b.readShared(to.part))
		case "styles":
			err = errors.Join(err, b.readStyles(to.part))
		}
	}
	return err
}

// readShared reads the table of texts.
func (b *workbook) readShared(part string) error {
	if b.shared != nil {
		return fmt.Errorf("two tables of texts: %w", errBook)
	}
	size := 0
	return b.each(part, true, func(d *document, e *xml.StartElement) error {
		if e.Name.Local != "si" || !d.in("sst") {
			return nil
		}
		text, err := d.text()
		if err != nil {
			return err
		}
		if size += len(text) + 16; size > maxShared {
			return errExpands
		}
		b.shared = append(b.shared, text)
		return nil
	})
}

// readStyles reads how cells show numbers.
func (b *workbook) readStyles(part string) error {
	codes, formats := map[int]string{}, []int(nil)
	err := b.each(part, true, func(d *document, e *xml.StartElement) error {
		switch {
		case e.Name.Local == "numFmt" && d.in("numFmts"):
			if id, err := strconv.Atoi(attribute(e, "numFmtId")); err == nil {
				codes[id] = attribute(e, "formatCode")
			}
		case e.Name.Local == "xf" && d.in("cellXfs"):
			id, _ := strconv.Atoi(attribute(e, "numFmtId"))
			formats = append(formats, id)
		}
		if len(formats) > maxStyles || len(codes) > maxDeclared || len(attribute(e, "formatCode")) > maxName {
			return fmt.Errorf("too many formats: %w", errBook)
		}
		return nil
	})
	for _, id := range formats {
		b.formats = append(b.formats, kindOfFormat(id, codes))
	}
	return err
}
