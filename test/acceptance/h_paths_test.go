package acceptance_test

import (
	"path/filepath"
	"testing"
)

func absolute(t testing.TB, path string) string {
	t.Helper()
	out, err := filepath.Abs(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// root is the module's folder, from which the program finds what was fetched.
const root = "../.."
