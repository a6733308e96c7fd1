package program

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/cmd/internal/cli"
	"quittance/internal/operation"
)

// The text of a refusal names the flag, the values and what to type next.
func TestRefusal(t *testing.T) {
	t.Parallel()
	words := New(cli.Program{}).AllWords()
	for _, c := range []struct {
		code, field string
		args        operation.Args
		want        []string
	}{
		{
			"key.too_many", "application",
			operation.Args{"owner": "Guichet (impots)", "live": false, "keys": []string{"A", "B (ends at C)"}, "most": 2},
			[]string{"--application: Guichet (impots) has 2 test keys (A, B (ends at C)) in force", "`quittance keys rotate", "`quittance keys revoke"},
		},
		{"key.not_an_id", "id", nil, []string{"KEY_ID: ", "`quittance keys list`"}},
		{"key.unknown", "id", operation.Args{"id": "A"}, []string{"KEY_ID: no key has the id A", "`quittance keys list`"}},
		{"key.rotated", "id", operation.Args{"id": "A", "ends_at": "T"}, []string{"rotated already", "ends at T", "`quittance keys revoke A`"}},
		{"key.over", "id", operation.Args{"id": "A", "state": "revoked"}, []string{"key A is revoked", "`quittance keys create`"}},
		{"key.no_room_to_overlap", "id", operation.Args{"id": "A", "owner": "G", "other": "B", "other_id": "B", "most": 2}, []string{"`quittance keys revoke B`", "--overlap 0"}},
		{"agency.unknown", "agency", operation.Args{"agency": "nobody", "agencies": []string{"impots"}}, []string{`--agency: no agency has the id or slug "nobody"; there are: impots`}},
		{"agency.unknown", "agency", operation.Args{"agencies": []string{}}, []string{"`quittance seed FILE`"}},
		{"agency.without_integrator", "agency", operation.Args{"agency": "douanes"}, []string{"douanes", "integrator: true", "`quittance seed FILE`"}},
		{"application.unknown", "application", operation.Args{"applications": []string{"A Guichet"}}, []string{"there are: A Guichet"}},
		{"application.ambiguous", "application", operation.Args{"applications": []string{"A", "B"}}, []string{"A; B"}},
		{"clerk.too_many_keys", "code", operation.Args{"clerk": "impots/c01", "live": true, "keys": []string{"A", "B"}}, []string{"--code: impots/c01 has 2 live keys (A, B)", "`quittance clerks revoke"}},
		{"clerk.unknown", "id", nil, []string{"`quittance clerks list`"}},
		{"clerk.not_a_name", "id", nil, []string{"`quittance clerks list`"}},
		{"clerk.key_unknown", "id", operation.Args{"id": "A"}, []string{"id A", "`quittance clerks list`"}},
		{"endpoint.unknown", "id", nil, []string{"`quittance endpoints list`"}},
		{"endpoint.too_many_secrets", "overlap", operation.Args{"signing": 2, "most": 2, "ends_at": "T"}, []string{"--overlap: 2 secrets sign", "ends at T", "--overlap 0"}},
		{"staff.needs_proposer", "", operation.Args{"group": "impots"}, []string{"impots has two members", "QUITTANCE_STAFF_KEY", "`quittance staff approve`"}},
		{"staff.not_approved", "", operation.Args{"name": "Paul", "id": "A"}, []string{"of Paul", "`quittance staff approve A`"}},
		{"staff.unknown", "id", nil, []string{"KEY_ID: ", "`quittance staff list`"}},
		{"code.without_words", "", operation.Args{"a": 1}, []string{"code.without_words a=1"}},
	} {
		err := words.Refusal(fmt.Errorf("doing: %w", operation.Refuse(c.code, c.field, c.args)), "KEY_ID")
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.code, err, w)
			}
		}
	}
	for code, say := range words {
		if text := say(operation.Args{}); text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", code, text)
		}
	}
	if other := errors.New("other"); !errors.Is(words.Refusal(other, "ID"), other) {
		t.Error("another error is changed")
	}
}
