package audit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A process that is killed at night leaves its folder. The next one removes it, and neither one that is in use, nor one
// that was just made, nor anything else.
func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	long := time.Now().Add(-2 * leftAfter)
	for _, name := range []string{folder + "killed", folder + "used", folder + "new", "other"} {
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(dir, "files"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name == folder+"used" {
			lock, err := pebble.LockDirectory(dir, vfs.Default)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lock.Close() })
		}
		if name != folder+"new" {
			if err := os.Chtimes(dir, long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	d, err := newDisk()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{"other", folder + "new", folder + "used"}; !slices.Equal(names, want) {
		t.Errorf("left %v, want %v", names, want)
	}
}
