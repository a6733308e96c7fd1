package runtime

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// RemoveStores removes the local stores in a folder (Config.StoreDir). The next Run
// restores each partition from the changelog. removed is the number of partitions that had
// a store. The error wraps ErrStoreInUse while a Run uses the folder; nothing is removed
// then. A folder that does not exist is an error that wraps fs.ErrNotExist and names it: the
// stores are somewhere else.
func RemoveStores(dir string) (removed int, err error) {
	// LockDirectory would make the folder.
	if _, err := os.Stat(dir); err != nil {
		return 0, fmt.Errorf("looking for local stores: %w", err)
	}
	lock, err := pebble.LockDirectory(dir, vfs.Default)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrStoreInUse, dir, err)
	}
	defer lock.Close() //nolint:errcheck // the end of the process releases it as well
	stores, err := filepath.Glob(filepath.Join(dir, storePattern))
	if err != nil {
		return 0, fmt.Errorf("listing local stores: %w", err)
	}
	for _, store := range stores {
		if err := os.RemoveAll(store); err != nil {
			return removed, fmt.Errorf("removing a local store: %w", err)
		}
		removed++
	}
	return removed, nil
}

// storePattern matches the folders of the partitions, see storeConfig.
const storePattern = "partition-*"
