package acceptance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// operator types commands.
type operator struct{ *up }

// run runs a command to its end.
func (o operator) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if len(args) > 1 {
		args = append(args, "--port", strconv.Itoa(o.port))
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = (&program{}).environment()
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	err = cmd.Run()
	return out.String(), says.String(), err
}

// says is what a command prints, which must succeed and hold a text.
func (o operator) says(t *testing.T, want string, args ...string) string {
	t.Helper()
	stdout, stderr, err := o.run(t, args...)
	if err != nil || !strings.Contains(stdout, want) || stderr != "" {
		t.Errorf("quittance %s: %v\n%s%s\nwant it to say %q", strings.Join(args, " "), err, stdout, stderr, want)
	}
	return stdout
}

// refused is a command that is refused in words, with exit code 1.
func (o operator) refused(t *testing.T, want string, args ...string) {
	t.Helper()
	stdout, stderr, err := o.run(t, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("quittance %s: %v\n%s%s\nwant it refused with %q", strings.Join(args, " "), err, stdout, stderr, want)
	}
}

func (o operator) json(t *testing.T, into any, args ...string) {
	t.Helper()
	stdout, stderr, err := o.run(t, append(args, "--json")...)
	if err == nil {
		err = json.Unmarshal([]byte(stdout), into)
	}
	if err != nil {
		t.Fatalf("quittance %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
}
