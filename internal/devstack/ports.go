package devstack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The range that FreePorts hands out. It lies below the ports that kernels give
// to outgoing connections (32768 and up on Linux, 16000 and up in some
// sandboxes), so that whoever is killed finds its port free when it comes back.
const (
	firstPort = 10_240
	lastPort  = 15_999
)

// claims holds the lock files of this process's ports open until it ends.
var claims = struct {
	sync.Mutex
	files map[int]*os.File
}{files: map[int]*os.File{}}

// FreePorts returns n different loopback ports that nobody listens on and that
// no other caller of FreePorts on this machine is given while this process
// lives, whether it listens on them or not.
func FreePorts(n int) ([]int, error) {
	dir := filepath.Join(os.TempDir(), "quittance-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // shared by the users of the machine
		return nil, fmt.Errorf("looking for a free port: %w", err)
	}
	_ = os.Chmod(dir, 0o777) //nolint:gosec // the umask may have narrowed it; another's folder is wide already
	claims.Lock()
	defer claims.Unlock()
	const size = lastPort - firstPort + 1
	ports := make([]int, 0, n)
	for at, tries := rand.IntN(size), 0; len(ports) < n; at, tries = at+1, tries+1 { //nolint:gosec // no secret
		if tries == size {
			return nil, errors.New("looking for a free port: all of " + strconv.Itoa(firstPort) + " to " + strconv.Itoa(lastPort) + " are taken")
		}
		if port := firstPort + at%size; claims.files[port] == nil && claim(dir, port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

// claim takes the port's lock and says whether it got it and the port is free.
func claim(dir string, port int) bool {
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
