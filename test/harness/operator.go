package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"quittance/dev/stack/program"
	"quittance/test/servers"
)

// Operator runs commands against an Up.
type Operator struct {
	*Up
	// StaffKey is the key of the person who runs them; may be empty.
	StaffKey string
}

// run runs a command and waits until it has ended.
func (o Operator) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path := servers.QuittanceDev(t)
	ctx, cancel := context.WithTimeout(t.Context(), Soon)
	defer cancel()
	if len(args) > 1 {
		args = append(args, "--port", strconv.Itoa(o.Port))
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = program.Environment()
	if o.StaffKey != "" {
		cmd.Env = append(cmd.Env, "QUITTANCE_STAFF_KEY="+o.StaffKey)
	}
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	err = cmd.Run()
	return out.String(), says.String(), err
}

// Says returns the output of a command, which must succeed and contain a text.
func (o Operator) Says(t *testing.T, want string, args ...string) string {
	t.Helper()
	stdout, stderr, err := o.run(t, args...)
	if err != nil || !strings.Contains(stdout, want) || stderr != "" {
		t.Errorf("quittance %s: %v\n%s%s\nwant the text %q", strings.Join(args, " "), err, stdout, stderr, want)
	}
	return stdout
}

// Refused runs a command that must fail with exit code 1 and a text on stderr.
func (o Operator) Refused(t *testing.T, want string, args ...string) {
	t.Helper()
	o.fails(t, 1, want, args...)
}

// Misused runs a wrong command line. It must fail with exit code 2 and a text on stderr.
func (o Operator) Misused(t *testing.T, want string, args ...string) {
	t.Helper()
	o.fails(t, 2, want, args...)
}

func (o Operator) fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	stdout, stderr, err := o.run(t, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("quittance %s: %v\n%s%s\nwant exit code %d and %q", strings.Join(args, " "), err, stdout, stderr, code, want)
	}
}

// FailsJSON decodes what a command prints with --json that must end with exit code 1.
func (o Operator) FailsJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	stdout, stderr, err := o.run(t, append(args, "--json")...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || json.Unmarshal([]byte(stdout), into) != nil {
		t.Errorf("quittance %s: %v\n%s%s\nwant exit code 1 and JSON", strings.Join(args, " "), err, stdout, stderr)
	}
}

// JSON decodes what a command prints with --json.
func (o Operator) JSON(t *testing.T, into any, args ...string) {
	t.Helper()
	stdout, stderr, err := o.run(t, append(args, "--json")...)
	if err == nil {
		err = json.Unmarshal([]byte(stdout), into)
	}
	if err != nil {
		t.Fatalf("quittance %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
}
