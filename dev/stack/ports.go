package stack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The range of FreePorts. It lies below the ports that kernels use for outgoing
// connections (32768 and up on Linux, 16000 and up in some sandboxes), so that the port
// of a killed server is still free when the server restarts.
const (
	firstPort = 10_240
	lastPort  = 15_999
)

// claims holds the lock files of this process's ports open until it ends.
var claims = struct {
	sync.Mutex
	files map[int]*os.File
}{files: map[int]*os.File{}}

// FreePorts returns n consecutive free loopback ports. No other caller of FreePorts on
// this machine gets them while this process lives, even if nothing listens on them.
func FreePorts(n int) ([]int, error) {
	dir := filepath.Join(os.TempDir(), "quittance-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // shared by the users of the machine
		return nil, fmt.Errorf("looking for free ports: %w", err)
	}
	_ = os.Chmod(dir, 0o777) //nolint:gosec // the umask may have narrowed it; another's folder is wide already
	claims.Lock()
	defer claims.Unlock()
	const size = lastPort - firstPort + 1
	start := rand.IntN(size) //nolint:gosec // no secret
	var row []int
	for at := range 2 * size {
		port := firstPort + (start+at)%size
		if port == firstPort || !claim(dir, port) { // the ports must be consecutive
			release(row)
			row = nil
			continue
		}
		if row = append(row, port); len(row) == n {
			return row, nil
		}
	}
	release(row)
	return nil, fmt.Errorf("looking for free ports: %d to %d hold no %d in a row", firstPort, lastPort, n)
}

// claim takes the port's lock. It reports whether it holds the lock and the port is free.
func claim(dir string, port int) bool {
	if claims.files[port] != nil {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o666) //nolint:gosec // shared, empty
	if err != nil {
		return false
	}
	free := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	if free {
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // no name to resolve, nothing to wait for
		if free = err == nil; free {
			_ = ln.Close()
		}
	}
	if !free {
		_ = f.Close()
		return false
	}
	claims.files[port] = f
	return true
}

func release(ports []int) {
	for _, port := range ports {
		_ = claims.files[port].Close()
		delete(claims.files, port)
	}
}
