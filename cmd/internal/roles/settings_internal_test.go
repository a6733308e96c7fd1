package roles

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"

	"quittance/internal/secret"
)

func flags(t *testing.T, args ...string) (*Settings, *pflag.FlagSet) {
	t.Helper()
	var s Settings
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.ConnectionFlags(f)
	f.Int("port", 7, "")
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &s, f
}

// Kubernetes sets QUITTANCE_PORT=tcp://10.0.0.1:80 in the pods beside a service that is
// called quittance. No command started there.
func TestPortOfKubernetesIsNoSetting(t *testing.T) {
	t.Setenv("QUITTANCE_PORT", "tcp://10.0.0.1:80")
	_, f := flags(t)
	if err := FromEnvironment(f); err != nil || f.Lookup("port").Value.String() != "7" {
		t.Errorf("port %s, %v", f.Lookup("port").Value, err)
	}
	for value, want := range map[string]string{"8": "", "eight": `QUITTANCE_PORT: "eight" is not a value of --port`} {
		t.Setenv("QUITTANCE_PORT", value)
		_, f := flags(t)
		if err := FromEnvironment(f); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestSecretsComeFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keys, empty := file("keys", "1:abc\n"), file("empty", "\n")
	s, f := flags(t, "--master-keys-file", keys, "--postgres-file", file("pg", "postgres://u:p@h/d"))
	if err := FromEnvironment(f); err != nil || s.MasterKeys != "1:abc" || s.Postgres != "postgres://u:p@h/d" {
		t.Errorf("%v", err)
	}
	for want, args := range map[string][]string{
		"both set":                               {"--master-keys", "1:abc", "--master-keys-file", keys},
		"no such file":                           {"--clickhouse-file", filepath.Join(dir, "none")},
		"--master-keys-file: " + empty + " is e": {"--master-keys-file", empty},
	} {
		_, f := flags(t, args...)
		if err := FromEnvironment(f); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSecretsInArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, nil},
		{[]string{"--master-keys", "1:abc"}, []string{"master-keys"}},
		{[]string{"--reference-key", "abc"}, []string{"reference-key"}},
		{[]string{"--postgres", "postgres://u@h/d", "--clickhouse", "http://h:8123/d"}, nil},
		{[]string{"--postgres", "postgres://u:p@h/d", "--clickhouse", "http://h:8123/d?password=p"}, []string{"postgres", "clickhouse"}},
		{[]string{"--master-keys-file", "keys"}, nil},
	} {
		if _, f := flags(t, c.args...); !reflect.DeepEqual(SecretsInArguments(f), c.want) {
			t.Errorf("%q: %q, want %q", c.args, SecretsInArguments(f), c.want)
		}
	}
}

// Roles of a developer's installation start at the same time and made different keys.
func TestDeveloperSecretsAreShared(t *testing.T) {
	t.Parallel()
	s := Settings{Options: Options{PlainSecrets: true}, Data: filepath.Join(t.TempDir(), "data")}
	var wg sync.WaitGroup
	made := make([]string, 20)
	for i := range made {
		wg.Go(func() {
			keys, err := s.OpenKeys()
			key, otherErr := s.OpenReferenceKey()
			if err != nil || otherErr != nil {
				t.Errorf("%v, %v", err, otherErr)
				return
			}
			made[i] = keys.Reveal() + " " + key.Reveal()
		})
	}
	wg.Wait()
	for _, one := range made {
		if one == "" || one != made[0] {
			t.Error("two processes have different keys")
		}
	}
	files, err := os.ReadDir(s.Data)
	if err != nil || len(files) != 2 {
		t.Errorf("%v %v, want master.keys and reference.key", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	s.PlainSecrets = false
	if _, err := s.OpenReferenceKey(); err == nil || !strings.Contains(err.Error(), "QUITTANCE_REFERENCE_KEY is not set") {
		t.Errorf("without a key: %v", err)
	}
	s.ReferenceKey = "1:abc"
	if _, err := s.OpenReferenceKey(); !errors.Is(err, secret.ErrReferenceKey) || strings.Contains(err.Error(), "abc") {
		t.Errorf("a malformed key: %v", err)
	}
}

// An installation wrote its host with a capital: browsers send it in lower case, so every passkey was
// refused, and nobody was told.
func TestHostInLowerCase(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{KindIngress, KindSink} {
		var s Settings
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.RunFlags(f, kind)
		if err := f.Parse([]string{"--checkout-url", "HTTPS://Pay.Example:8443/A"}); err != nil || s.CheckoutURL != "https://pay.example:8443/A" {
			t.Errorf("%v: %q, %v", kind, s.CheckoutURL, err)
		}
	}
}
