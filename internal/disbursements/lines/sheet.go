package lines

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// use says what a sheet may have.
type use int

const (
	useLines        use = iota
	useInstructions     // no cell beyond the third column: a line does not fit
	useNothing          // no cell
)

// The largest numbers of rows and columns of a sheet, and the columns of instructions.
const (
	maxRows            = 1 << 20
	maxColumns         = 1 << 14
	instructionColumns = 3
)

// sheetReading is the state of reading one sheet.
type sheetReading struct {
	*reading
	*workbook

	sheet  sheet
	use    use
	filled bool         // the sheet has a cell
	hidden map[int]bool // columns, from 0; false when the fault is noted
	cells  []cell
}

// errEnough says that a sheet is refused, so that the rest of it need not be read.
var errEnough = errors.New("the rest of the sheet is not read")

func (s *sheetReading) read() error {
	if s.sheet.part == "" {
		s.fault(Fault{Kind: FaultSecondSheet, Cell: s.sheet.name})
		return nil
	}
	err := s.each(s.sheet.part, true, func(d *document, e *xml.StartElement) error {
		switch name := e.Name.Local; {
		case len(d.path) == 1 && name != "worksheet":
			return fmt.Errorf("no worksheet: %w", errBook)
		case name == "col" && d.in("cols"):
			return s.column(e)
		case name == "sheetData" && len(d.path) == 2:
			return s.rows(d)
		case name == "mergeCell" && d.in("mergeCells") && s.use == useLines:
			s.fault(Fault{Kind: FaultMerged, Want: rangeOf(attribute(e, "ref"))})
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// rangeOf returns a range of cells, such as A1:B2, if it is one.
func rangeOf(ref string) string {
	if strings.Trim(ref, capitals+digits+":") != "" || len(ref) > len("XFD1048576:XFD1048576") {
		return "?"
	}
	return ref
}

func (s *sheetReading) column(e *xml.StartElement) error {
	if width, err := strconv.ParseFloat(attribute(e, "width"), 64); !yes(attribute(e, "hidden")) && (err != nil || width > 0) {
		return nil
	}
	first, err := strconv.Atoi(attribute(e, "min"))
	last, err2 := strconv.Atoi(attribute(e, "max"))
	if err != nil || err2 != nil || first < 1 || last > maxColumns || last-first+len(s.hidden) >= maxColumns {
		return fmt.Errorf("columns that are none, or overlap: %w", errBook)
	}
	if s.hidden == nil {
		s.hidden = map[int]bool{}
	}
	for column := first - 1; column < last; column++ {
		s.hidden[column] = true
	}
	return nil
}

// yes reads a value of xsd:boolean.
func yes(value string) bool { return value == "1" || value == "true" }

// rows reads the rows of the sheet, to the end of the present element.
func (s *sheetReading) rows(d *document) error {
	last := 0
	for depth := len(d.path); len(d.path) >= depth; {
		token, err := d.token()
		if err != nil {
			return unexpected(err)
		}
		e, ok := token.(xml.StartElement)
		switch {
		case !ok:
			continue
		case e.Name.Local != "row":
			return fmt.Errorf("something else than a row: %w", errBook)
		}
		row := last + 1
		if text := attribute(&e, "r"); text != "" {
			if row, err = strconv.Atoi(text); err != nil || row <= last {
				return fmt.Errorf("rows in another order: %w", errBook)
			}
		}
		if last = row; row > maxRows {
			return fmt.Errorf("too many rows: %w", errBook)
		}
		height, err := strconv.ParseFloat(attribute(&e, "ht"), 64)
		if err := s.row(d, row, yes(attribute(&e, "hidden")) || err == nil && height == 0); err != nil {
			return err
		}
	}
	return nil
}

// row reads the cells of a row, to the end of the present element.
func (s *sheetReading) row(d *document, row int, hidden bool) error {
	s.cells = s.cells[:0]
	last := -1
	for depth := len(d.path); len(d.path) >= depth; {
		token, err := d.token()
		if err != nil {
			return unexpected(err)
		}
		e, ok := token.(xml.StartElement)
		switch {
		case !ok:
			continue
		case e.Name.Local == "extLst":
			if err := d.skip(); err != nil {
				return err
			}
			continue
		case e.Name.Local != "c":
			return fmt.Errorf("something else than a cell: %w", errBook)
		}
		column := last + 1
		if ref := attribute(&e, "r"); ref != "" {
			if column, err = columnOf(ref, row); err != nil {
				return err
			}
		}
		if column <= last || column >= maxColumns {
			return fmt.Errorf("cells in another order: %w", errBook)
		}
		last = column
		c, err := s.cell(d, &e)
		if err != nil {
			return err
		}
		if c.column = column; c.text != "" || c.kind == cellFormula {
			s.cells = append(s.cells, c)
		}
	}
	if len(s.cells) == 0 {
		return nil
	}
	return s.take(row, hidden)
}

// take passes a row on, or refuses it in a sheet that may not have it.
func (s *sheetReading) take(row int, hidden bool) error {
	s.filled = true
	if s.use == useNothing || s.use == useInstructions && s.cells[len(s.cells)-1].column >= instructionColumns {
		s.fault(Fault{Kind: FaultSecondSheet, Cell: s.sheet.name})
		return errEnough
	}
	if s.use == useInstructions {
		return nil
	}
	if hidden {
		s.fault(Fault{Kind: FaultHiddenRow, Row: row})
	}
	for _, c := range s.cells {
		if s.hidden[c.column] {
			s.hidden[c.column] = false
			s.fault(Fault{Kind: FaultHiddenColumn, Row: row, Column: letters(c.column)})
		}
	}
	return s.next(row, s.cells)
}

// columnOf returns the number of the column, from 0, of a reference such as C17 to a cell of a row.
func columnOf(ref string, row int) (int, error) {
	name := strings.TrimRight(ref, digits)
	if number, err := strconv.Atoi(ref[len(name):]); err != nil || number != row || name == "" || len(name) > 3 || strings.Trim(name, capitals) != "" {
		return 0, fmt.Errorf("a cell of another row: %w", errBook)
	}
	column := 0
	for _, c := range []byte(name) {
		column = column*26 + int(c-'A') + 1
	}
	return column - 1, nil
}

// cell reads a cell, to the end of the present element.
func (s *sheetReading) cell(d *document, e *xml.StartElement) (c cell, err error) {
	var value joined
	inline, values, formula := "", 0, false
	for depth := len(d.path); len(d.path) >= depth; {
		token, err := d.token()
		if err != nil {
			return c, unexpected(err)
		}
		child, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch child.Name.Local {
		case "v":
			values++
			err = d.characters(&value)
		case "is":
			values++
			inline, err = d.text()
		case "f":
			formula = true
			err = d.skip()
		case "extLst":
			err = d.skip()
		default:
			err = fmt.Errorf("something else in a cell: %w", errBook)
		}
		if err != nil {
			return c, err
		}
	}
	if values > 1 {
		return c, fmt.Errorf("a cell with two values: %w", errBook)
	}
	c, err = s.valued(attribute(e, "t"), attribute(e, "s"), value.String(), inline)
	if formula {
		c.kind = cellFormula
	}
	return c, err
}

// valued makes a cell of its type, its style and its value.
func (s *sheetReading) valued(kind, style, value, inline string) (cell, error) {
	if kind == "inlineStr" {
		return cell{text: inline}, nil
	}
	if inline != "" {
		return cell{}, fmt.Errorf("a text in a cell of another type: %w", errBook)
	}
	if value == "" {
		return cell{}, nil
	}
	switch kind {
	case "s":
		i, err := strconv.Atoi(value)
		if err != nil || i < 0 || i >= len(s.shared) {
			return cell{}, fmt.Errorf("a text that is missing: %w", errBook)
		}
		return cell{text: s.shared[i]}, nil
	case "str":
		return cell{text: value}, nil
	case "b":
		return cell{text: value, kind: cellBoolean}, nil
	case "e":
		return cell{text: value, kind: cellError}, nil
	case "d":
		return cell{text: value, kind: cellDate}, nil
	case "", "n":
		if style == "" {
			if len(s.formats) == 0 {
				return cell{text: value, kind: cellGeneral}, nil
			}
			style = "0"
		}
		i, err := strconv.Atoi(style)
		if err != nil || i < 0 || i >= len(s.formats) {
			return cell{}, fmt.Errorf("a style that is missing: %w", errBook)
		}
		return cell{text: value, kind: s.formats[i]}, nil
	}
	return cell{}, fmt.Errorf("a cell of an unknown type: %w", errBook)
}
