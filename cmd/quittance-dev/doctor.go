package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli/doctor"
	"quittance/cmd/internal/roles"
	"quittance/dev/stack"
	"quittance/dev/stack/chdb"
)

// doctorUp returns the checks of what `up` needs before it starts.
func doctorUp() doctor.Role {
	u := &installation{}
	return doctor.Role{
		Name: "up", Flags: u.flags,
		Checks: func(s roles.Settings, f *pflag.FlagSet) []doctor.Check {
			port, _ := f.GetInt("port") // every command has it, see portFlag
			u.Settings, u.port = s, cmp.Or(port, defaultPort)
			return u.checks()
		},
	}
}

// checks returns the checks of the parts that `up` starts, or of an `up` that runs on the port.
func (u *installation) checks() []doctor.Check {
	out := []doctor.Check{
		{Name: "registry file", Do: func(context.Context) (string, error) {
			if _, err := os.Stat(u.registry); err != nil {
				return "", fmt.Errorf("%w; name the file with --registry", err)
			}
			return u.registry, nil
		}},
		{Name: "data folder", Do: func(context.Context) (string, error) {
			dir, err := filepath.Abs(u.Data)
			if err != nil {
				return "", err
			}
			return dir, stack.CheckPostgresDir(dir)
		}},
		{Name: "postgres", Do: func(context.Context) (string, error) { return stack.FindPostgres("") }},
		{Name: "clickhouse", Do: func(context.Context) (string, error) { return chdb.FindLibrary() }},
	}
	if u.broker == brokerKafka {
		out = append(out,
			doctor.Check{Name: "kafka", Do: func(context.Context) (string, error) { return stack.FindKafkaLibs("") }},
			doctor.Check{Name: "java", Do: func(context.Context) (string, error) {
				java, err := exec.LookPath("java")
				if err != nil {
					return "", errors.New("no java on the PATH; run `make deps/test`, which installs it or names the command that does")
				}
				return java, nil
			}})
	}
	// An up that runs has found its parts, which may lie in a checkout that is not the present folder.
	for i, needed := range out {
		out[i].Do = func(ctx context.Context) (string, error) {
			if _, runs := u.runs(ctx); runs {
				return fmt.Sprintf("the `up` that runs on %d has it", u.port), nil
			}
			return needed.Do(ctx)
		}
	}
	return append(out, doctor.Check{Name: "ports", Do: u.checkPorts})
}

// runs reports whether an `up` of this user runs on the port. unready says what it lacks.
func (u *installation) runs(ctx context.Context) (unready string, runs bool) {
	locator, err := locatorFile(u.port)
	if err != nil {
		return "", false
	}
	if _, err := os.Stat(locator); err != nil {
		return "", false
	}
	return asksReady(ctx, local(u.port+portHealth))
}

// ports returns the ports that `up` listens on, as offsets from its first.
func (u *installation) ports() map[string]int {
	ports := map[string]int{
		"service": 0, "simulators": portSimulators, "broker": portBroker, "broker's controller": portController, "postgres": portPostgres, "clickhouse": portClickHouse,
		"schema registry": portSchemaRegistry, "health": portHealth, "demo shop": portShop, "simulated mail server": portMail, "simulated partner": portPartner, "staff pages": portOffice, "simulated switch": portSwitch,
	}
	if u.broker != brokerKafka {
		delete(ports, "broker's controller")
		if u.broker != brokerEmbedded { // it is elsewhere
			delete(ports, "broker")
		}
	}
	return ports
}

// checkPorts says whether an `up` can have its ports. The ports of one that runs are its own.
func (u *installation) checkPorts(ctx context.Context) (string, error) {
	switch unready, runs := u.runs(ctx); {
	case runs && unready == "":
		return fmt.Sprintf("an `up` runs on %d and is ready: %d to %d are its ports", u.port, u.port, u.port+portLast), nil
	case runs:
		return "", fmt.Errorf("an `up` runs on %d and is not ready: %s", u.port, unready)
	}
	if err := u.reserve(ctx); err != nil {
		return "", err
	}
	u.releaseAll()
	return fmt.Sprintf("%d to %d are free", u.port, u.port+portLast), nil
}

// asksReady asks the health address of an `up` whether it is ready. unready says what it
// lacks. runs is false if none answers.
func asksReady(ctx context.Context, health string) (unready string, runs bool) {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return "", false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", false
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // what arrived is enough
	switch text := strings.TrimSpace(string(body)); {
	case answer.StatusCode == http.StatusOK && text == "ready":
		return "", true
	case answer.StatusCode == http.StatusServiceUnavailable && text != "":
		return text, true
	}
	return "", false // another program
}

// healthPatience bounds the question whether an `up` is ready.
const healthPatience = 2 * time.Second
