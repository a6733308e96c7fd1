package access

import (
	"fmt"
	"os"
)

// OpenFile opens a file that a command reads as a whole, and returns its size. What is no regular file, such as a pipe, is
// refused: it cannot be read twice.
func OpenFile(name string) (file *os.File, size int64, err error) {
	if file, err = os.Open(name); err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, 0, fmt.Errorf("%s is not a regular file: save what it holds to a file first", name)
	}
	return file, info.Size(), nil
}
