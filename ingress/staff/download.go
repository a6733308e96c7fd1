package staff

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"time"

	"quittance/internal/identity"
	"quittance/internal/operation"
)

// ByFormat is the name in addresses of the format of a file of rows, CSV and XLSX its values.
const (
	ByFormat = "format"
	CSV      = "csv"
	XLSX     = "xlsx"
)

// Files are the addresses of a list or a report as files (template "files").
type Files struct{ CSVURL, XLSXURL string }

// Files returns the addresses of files at a path with conditions, names and values in turn; nil if the person makes none of the
// agency's; empty for all.
func (v *Visit) Files(agencyID, path string, query ...string) *Files {
	if v.Acting.May(identity.MayExport, agencyID) != nil {
		return nil
	}
	to := func(format string) string {
		return v.URL(path, append(query[:len(query):len(query)], ByFormat, format)...)
	}
	return &Files{to(CSV), to(XLSX)}
}

// Table is rows that are written as a file.
type Table interface {
	CSV(out io.Writer) error
	XLSX(out io.Writer) error
}

// Format returns the format that the address asks for. ok is false after the answer that there is no such one.
func (v *Visit) Format() (format string, ok bool) {
	if format = v.Query(ByFormat); format == CSV || format == XLSX {
		return format, true
	}
	v.Unknown()
	return format, false
}

// SendTable answers with a table as a file in a format of Format. The audit table has the entry, with the format and the SHA-256 of
// the file, before the first byte goes out. The name is without its ending.
func (v *Visit) SendTable(t Table, format, name string, e operation.Entry) {
	write := t.CSV
	if format == XLSX {
		write = t.XLSX
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		v.Unavailable("writing a file", err)
		return
	}
	sum := sha256.Sum256(b.Bytes())
	e.Detail[ByFormat], e.Detail["sha256"] = format, hex.EncodeToString(sum[:])
	if err := v.Note(e); err != nil {
		v.Unavailable("recording a download", err)
		return
	}
	to := v.Download(name+"."+format, int64(b.Len()))
	_, _ = to.Write(b.Bytes()) // the reader may be gone
	to.End()
}

// Download is the answer with a file that the browser stores and never shows. The header goes out with the first bytes. The last bytes
// wait for End, so that a file that was not read to its end arrives shorter than the header says, and the browser reports it.
type Download struct {
	// Begun says that the header is sent: the request cannot be answered otherwise any more.
	Begun bool

	v    *Visit
	name string
	size int64
	held []byte
}

const (
	// heldBytes is how much of a file waits for its end.
	heldBytes = 4 << 10
	// writePatience is how long the reader's line may take for one write, which is of a part of the file.
	writePatience = time.Minute
)

// Download answers with a file of a size in bytes. The name is of letters, digits, points and hyphens.
func (v *Visit) Download(name string, size int64) *Download {
	return &Download{v: v, name: name, size: size}
}

// Write implements io.Writer.
func (d *Download) Write(p []byte) (int, error) {
	d.begin()
	d.held = append(d.held, p...)
	if n := len(d.held) - heldBytes; n > 0 {
		if err := d.send(d.held[:n]); err != nil {
			return 0, err
		}
		d.held = append([]byte{}, d.held[n:]...)
	}
	return len(p), nil
}

// End sends the rest.
func (d *Download) End() {
	d.begin()
	_ = d.send(d.held) // the reader may be gone
}

// send sends bytes. The server's own deadline is for a whole answer: a slow line would lose the rest of a large file.
func (d *Download) send(p []byte) error {
	_ = http.NewResponseController(d.v.W).SetWriteDeadline(time.Now().Add(writePatience)) // a writer without deadlines has none to extend
	_, err := d.v.W.Write(p)
	return err
}

// Broken logs why the file has no end.
func (d *Download) Broken(doing string, err error) { d.v.log(doing, err) }

func (d *Download) begin() {
	if d.Begun {
		return
	}
	d.Begun = true
	h := d.v.W.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	h.Set("Content-Length", strconv.FormatInt(d.size, 10))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	d.v.W.WriteHeader(http.StatusOK)
}
