package payday

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Payout is a payout in the ledger of a simulated operator.
type Payout struct {
	ID       string `json:"id"`
	Operator string `json:"operator"`
	Amount   string `json:"amount"`
	Payee    string `json:"payee"`
	// Status is what the operator says of it: pending, paid or refused.
	Status string `json:"status"`
	// Payments is how often money went to the payee, whatever the operator says.
	Payments   int        `json:"payments"`
	Duplicates int        `json:"duplicate_requests"`
	ReceivedAt time.Time  `json:"received_at"`
	ReturnedAt *time.Time `json:"returned_at"`
}

// Ledger returns all payouts of the simulated operators, the oldest first.
func (p *Payday) Ledger(ctx context.Context) (out []Payout, err error) {
	return out, p.control(ctx, http.MethodGet, "payouts", nil, &out)
}

// Decide has a simulated operator pay or refuse a payout that waits.
func (p *Payday) Decide(ctx context.Context, id string, paid bool) error {
	to := "refuse"
	if paid {
		to = "pay"
	}
	return p.control(ctx, http.MethodPost, "payouts/"+id+"/"+to, map[string]any{}, nil)
}

// Return has the money of a payout come back, less a fee.
func (p *Payday) Return(ctx context.Context, id, fee string) error {
	return p.control(ctx, http.MethodPost, "payouts/"+id+"/return", map[string]any{"fee": fee}, nil)
}

// Fund sets what an agency's account with a simulated operator may still pay; an empty amount is no limit.
func (p *Payday) Fund(ctx context.Context, a *Agency, operator, amount string) error {
	what := map[string]any{"account": a.ID}
	if amount != "" {
		what["amount"] = amount
	}
	return p.control(ctx, http.MethodPost, operator+"/float", what, nil)
}

// Fail has a simulated operator answer its next requests with a status, or, if it is 0, carry them out and answer late.
func (p *Payday) Fail(ctx context.Context, operator string, status, times int, late time.Duration) error {
	what := map[string]any{"times": times}
	if status != 0 {
		what["status"] = status
	} else {
		what["delay"] = late.String()
	}
	return p.control(ctx, http.MethodPost, operator, what, nil)
}

func (p *Payday) control(ctx context.Context, method, path string, what, answer any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("asking the simulators: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.cfg.Simulator+"/control/"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking the simulators: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking the simulators: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("asking the simulators for %s: %w", path, err)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("asking the simulators for %s: %s %s", path, resp.Status, text)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("reading what the simulators say of %s: %w", path, err)
	}
	return nil
}
