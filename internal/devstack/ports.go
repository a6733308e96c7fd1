package devstack

import (
	"fmt"
	"net"
)

// FreePorts returns n different loopback ports that nobody listened on a moment
// ago. Another process may take one before it is used; whoever binds it says so.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // no name to resolve, nothing to wait for
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		// Held until all are found, so that no two are the same.
		defer func() { _ = ln.Close() }()
		ports[i] = ln.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
