package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/operation"
)

// The text of a refused operation on deliveries has the reason and the command that mends
// it.
func TestWordsOfRefusedDeliveries(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for code, c := range map[string]struct {
		args operation.Args
		want []string
	}{
		deliveries.CodeUnknown:        {operation.Args{"days": 60}, []string{"no delivery has this id", "60 days"}},
		deliveries.CodeAccepted:       {operation.Args{"at": when}, []string{"was accepted at 2026-03-01 12:00:00 UTC", "quittance replay"}},
		deliveries.CodeSuperseded:     {nil, []string{"later webhook", "never sent again"}},
		deliveries.CodeBodyGone:       {nil, []string{"no longer kept", "quittance replay"}},
		deliveries.CodeStateUnknown:   {operation.Args{"states": deliveries.States}, []string{"needs_operator"}},
		deliveries.CodeNotRetryable:   {operation.Args{"state": "delivered", "states": deliveries.Retryable}, []string{"delivered", "needs_operator"}},
		deliveries.CodeSuspended:      {operation.Args{"at": when, "destination": "d"}, []string{"suspended since 2026-03-01", "quittance endpoints resume d"}},
		deliveries.CodeNeverSuspended: {operation.Args{"kind": deliveries.Kind("erp")}, []string{"an ERP is never suspended"}},
		deliveries.CodeNoRecovery:     {nil, []string{"no such recovery"}},
		deliveries.CodeBehind:         {nil, []string{"has not applied all outcomes", "quittance sink schedule"}},
	} {
		said := words.InWords(fmt.Errorf("retrying a delivery: %w", operation.Refuse(code, "", c.args))).Error()
		for _, w := range c.want {
			if !strings.Contains(said, w) {
				t.Errorf("%s: %q does not say %q", code, said, w)
			}
		}
		if strings.Contains(said, "retrying") || strings.Contains(said, "%!") || strings.Contains(said, "<nil>") {
			t.Errorf("%s: %q", code, said)
		}
	}
}
