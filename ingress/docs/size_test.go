package docs

import (
	"strings"
	"testing"
)

// A reader on a slow line waited for pages of more than 60 kB: a page that grows above is split.
func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	const most = 60 << 10
	for path, r := range manual(t).resources {
		if strings.HasPrefix(r.contentType, "text/html") && len(r.body) > most {
			t.Errorf("%s has %d bytes (%d compressed), want %d at most", path, len(r.body), len(r.zipped), most)
		}
	}
}
