package papers

import (
	"fmt"
	"strconv"

	"rsc.io/qr" // without dependencies, and complete: no release is needed. Others take longer than the rest of a paper.
)

// quiet is the number of white modules around a QR code (ISO/IEC 18004).
const quiet = 4

// code is a QR code.
type code struct {
	modules [][]bool // rows; true is dark
}

// newReceiptCode returns the code of an address with a token: bytes at level M, which
// restores 15 % of it.
func newReceiptCode(address string) (code, error) { return newCode(address, qr.M) }

// newNoticeCode returns the code of an address in capitals, at the highest level that fits
// version 3, whose modules are large.
func newNoticeCode(address string) (c code, err error) {
	for _, level := range []qr.Level{qr.H, qr.Q, qr.M, qr.L} {
		if c, err = newCode(address, level); err != nil || c.version() <= 3 {
			return c, err
		}
	}
	return newCode(address, qr.M) // a long host
}

func newCode(content string, level qr.Level) (code, error) {
	symbol, err := qr.Encode(content, level)
	if err != nil {
		return code{}, fmt.Errorf("drawing a QR code: %w", err)
	}
	c := code{make([][]bool, symbol.Size)}
	for y := range c.modules {
		c.modules[y] = make([]bool, symbol.Size)
		for x := range c.modules[y] {
			c.modules[y][x] = symbol.Black(x, y)
		}
	}
	return c, nil
}

// version returns 1 to 40.
func (c code) version() int { return (len(c.modules) - 17) / 4 }

// The smallest module and the smallest code of a receipt on paper, in millimetres.
const (
	minModule = 0.5
	minCode   = 46.0
)

// side returns the side of the code without its quiet zone, so that phones read it from
// paper: at least 46 mm, and 0.5 mm a module.
func (c code) side() float64 { return max(minCode, minModule*float64(len(c.modules))) }

// code draws a QR code at x and y, and its quiet zone around it.
func (s *sheet) code(c code, x, y, side float64) {
	module := side / float64(len(c.modules))
	s.fill(colour{255, 255, 255})
	s.pdf.Rect(x-quiet*module, y-quiet*module, side+2*quiet*module, side+2*quiet*module, "F")
	// One path in units of modules, from the lower left corner: a rectangle for each run of
	// dark modules. It is a third of the size of rectangles of their own, and has no seams.
	const points = 72 / 25.4
	size := len(c.modules)
	path := fmt.Appendf(nil, "q 0 g %.5f 0 0 %.5f %.5f %.5f cm\n", module*points, module*points, x*points, (pageHeight-y-side)*points)
	for row, modules := range c.modules {
		for column := 0; column < size; column++ {
			if !modules[column] {
				continue
			}
			begin := column
			for column+1 < size && modules[column+1] {
				column++
			}
			path = strconv.AppendInt(path, int64(begin), 10)
			path = strconv.AppendInt(append(path, ' '), int64(size-1-row), 10)
			path = strconv.AppendInt(append(path, ' '), int64(column-begin+1), 10)
			path = append(path, " 1 re\n"...)
		}
	}
	s.pdf.RawWriteStr(string(append(path, "f Q"...)))
}
