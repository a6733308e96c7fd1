package staff_test

import (
	"bytes"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"quittance/ingress/staff"
	"quittance/ingress/web"
)

// line is the connection of a browser, which notes when its server would give up.
type line struct {
	*httptest.ResponseRecorder

	until  time.Time
	writes int
	late   bool // something was written without a new deadline
}

// SetWriteDeadline is for http.ResponseController.
func (l *line) SetWriteDeadline(t time.Time) error {
	l.until = t
	return nil
}

func (l *line) Write(p []byte) (int, error) {
	l.writes++
	l.late = l.late || l.until.Before(time.Now())
	l.until = time.Time{}
	return l.ResponseRecorder.Write(p)
}

// The server gives an answer a minute. A large file was cut off on a slow line, whatever the line had read until then.
func TestADownloadTakesAsLongAsItsLine(t *testing.T) {
	t.Parallel()
	l := &line{ResponseRecorder: httptest.NewRecorder()}
	file := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	d := (&staff.Visit{Visit: web.Visit{W: l}}).Download("statement", int64(len(file)))
	for part := range slices.Chunk(file, 10<<10) {
		if _, err := d.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	d.End()
	if l.late || l.writes < 7 || !bytes.Equal(l.Body.Bytes(), file) {
		t.Errorf("%d writes, one without a new deadline: %t; %d bytes", l.writes, l.late, l.Body.Len())
	}
}
