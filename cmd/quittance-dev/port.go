package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
)

// Ports of an `up`, as offsets from the port of the service.
const (
	defaultPort        = 8080
	portService        = 0
	portSimulators     = 1
	portBroker         = 2
	portController     = 3
	portPostgres       = 4
	portClickHouse     = 5
	portSchemaRegistry = 6
	portHealth         = 7
	portShop           = 8
	portMail           = 9
	portPartner        = 10
	portOffice         = 11
	portSwitch         = 13
	portLast           = portSwitch
)

const addressHint = "; or give --port of a running `" + name + " up`"

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// reserve binds all ports of the `up` before anything starts. A part that binds its port a minute later may find it taken
// by a connection of another program. release gives a port to its part.
func (u *installation) reserve(ctx context.Context) error {
	u.held = map[int]net.Listener{}
	var taken []string
	for name, offset := range u.ports() {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", local(u.port+offset))
		if err != nil {
			taken = append(taken, fmt.Sprintf("%d (%s)", u.port+offset, name))
			continue
		}
		u.held[offset] = l
	}
	if len(taken) == 0 {
		return nil
	}
	u.releaseAll()
	slices.Sort(taken)
	return fmt.Errorf("in use by other programs: %s; choose another --port: it takes %d and the ports until %d", strings.Join(taken, ", "), u.port, u.port+portLast)
}

// release frees reserved ports.
func (u *installation) release(offsets ...int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, offset := range offsets {
		if l := u.held[offset]; l != nil {
			_ = l.Close()
			delete(u.held, offset)
		}
	}
}

// releaseAll frees all ports that are still reserved.
func (u *installation) releaseAll() {
	for offset := range portLast + 1 {
		u.release(offset)
	}
}

// portFlag declares --port, which stands for the addresses of an `up`.
func portFlag(s *roles.Settings, f *pflag.FlagSet) (locate func() error) {
	port := f.Int("port", 0, "stands for the addresses of an up that runs on this port")
	return func() error {
		if *port == 0 {
			return nil
		}
		return readLocator(*port, s)
	}
}

// located returns the settings in the locator. `up` writes this file, so that other
// commands find its parts by its port.
func located(s *roles.Settings) map[string]*string {
	return map[string]*string{
		"data": &s.Data, "kafka": &s.Kafka, "postgres": &s.Postgres, "clickhouse": &s.ClickHouse, "schema_registry": &s.SchemaRegistry, "simulator_url": &s.SimulatorURL, "mail": &s.Mail,
	}
}

func locatorFile(port int) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w", err)
	}
	return filepath.Join(dir, "quittance", "up-"+strconv.Itoa(port)+".json"), nil
}

// writeLocator writes the locator. Only the same user may read it, because it has the
// address of Postgres with its password.
func writeLocator(port int, s *roles.Settings) (remove func(), err error) {
	file, err := locatorFile(port)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(located(s))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", file, err)
	}
	return func() { _ = os.Remove(file) }, nil
}

// readLocator sets the missing addresses to those of the `up` on a port.
func readLocator(port int, s *roles.Settings) error {
	file, err := locatorFile(port)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no `%s up` runs on port %d for this user; start one, or name the parts with --kafka, --postgres, --clickhouse and --schema-registry", name, port)
	}
	var found map[string]string
	if err == nil {
		err = json.Unmarshal(b, &found)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	for name, to := range located(s) {
		if *to == "" || name == "data" { // the data folder has a default
			*to = found[name]
		}
	}
	return nil
}
