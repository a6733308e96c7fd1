package contract_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quittance/test/harness"
)

// docs/design/contract.md lists the statements that TestContract and TestCashin check, under
// the same numbers.
func TestContractPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(harness.Root, "docs/design/contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(text)) {
		number, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		digits := strings.TrimPrefix(number, "C")
		if strings.HasPrefix(line, "| ") && digits != "" && strings.Trim(digits, "0123456789") == "" {
			listed = append(listed, strings.TrimSpace(line))
		}
	}
	var checked []string
	check := func(number, says string) {
		checked = append(checked, "| "+number+" | "+strings.ReplaceAll(says, "|", `\|`)+" |")
	}
	for i, s := range statements() {
		check(fmt.Sprint(i+1), s.says)
	}
	for i, s := range cashinStatements {
		check(fmt.Sprintf("C%d", i+1), s.says)
	}
	for _, line := range checked {
		if !slices.Contains(listed, line) {
			t.Errorf("the page lacks %s", line)
		}
	}
	for _, line := range listed {
		if !slices.Contains(checked, line) {
			t.Errorf("no test checks %s", line)
		}
	}
}
