package jobs

import (
	"context"
	"testing"

	"quittance/casework"
	"quittance/internal/decisions"
)

// SignedApproval is the signature of an approval that whoever has the keys of a store makes in the name of a person.
func SignedApproval(ctx context.Context, t *testing.T, s *Store, id, person, name string) []byte {
	t.Helper()
	j, err := s.Read(ctx, id, "")
	if err != nil {
		t.Fatal(err)
	}
	signed, err := decisions.Sign(s.cfg.Keys, j.agreement(), casework.DecisionApproved, casework.Signed{Person: person, Name: name, At: j.StartedAt})
	if err != nil {
		t.Fatal(err)
	}
	return signed.Signature
}
