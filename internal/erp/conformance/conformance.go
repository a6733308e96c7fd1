package conformance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/internal/call"
	"quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// Subject is the subject_ref whose dues are read and paid when Config names none.
const Subject = "TP-1001"

// slow is how long citizens wait for a list without complaint.
const slow = time.Second

// Outcome is what a check found.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeWarning Outcome = "warning" // it works, but not as it should
	OutcomeFailed  Outcome = "failed"
	OutcomeSkipped Outcome = "skipped" // it could not be tried
)

// Finding is the result of one check.
type Finding struct {
	Check   string // its stable name, such as dues.authentication
	Outcome Outcome
	Said    string // what the ERP did, in words
	Mend    string // what to change; empty when nothing is wrong
}

// Config configures a check.
type Config struct {
	// Client calls the ERP. Required.
	Client *erp.Client
	// Settings are the address, the credentials and the networks of the ERP. Required.
	Settings registry.ERPSettings
	// Subject is a subject_ref of a test taxpayer who owes something; Subject when empty.
	Subject string
	// Batch is a batch_ref with lines; empty: only an unknown batch is asked for.
	Batch string
	// ReadOnly posts no confirmations.
	ReadOnly bool
	// Settle is how long a confirmation may take until the balance shows it; zero: 10 s.
	Settle time.Duration
}

// Run runs all checks and returns their findings in order. The error is that of a
// Config without a required field.
func Run(ctx context.Context, cfg Config) ([]Finding, error) {
	if cfg.Client == nil || cfg.Settings.BaseURL == "" {
		return nil, errors.New("checking an ERP: Client and Settings are required")
	}
	cfg.Subject, cfg.Settle = cmp.Or(cfg.Subject, Subject), cmp.Or(cfg.Settle, 10*time.Second)
	c := &check{Config: cfg, wrong: cfg.Settings}
	c.wrong.Auth.Secret = secret.NewText("wrong-" + uuid.NewString())
	if !c.health(ctx) {
		return c.findings, nil
	}
	dues := c.dues(ctx)
	c.unknownSubject(ctx)
	c.strangers(ctx)
	switch payable := slices.DeleteFunc(dues, erp.Due.Paid); {
	case cfg.ReadOnly:
		c.add("confirmation", OutcomeSkipped, "Not tried, because only reading was asked for.", "")
	case len(payable) == 0:
		c.add("confirmation", OutcomeSkipped, "Not tried: the subject "+cfg.Subject+" has no usable due with an outstanding amount.", "Give a test subject that owes something, best a due with allow_partial and an outstanding amount of at least twice its minimum, and one more.")
	default:
		c.confirmations(ctx, payable)
	}
	c.disbursements(ctx)
	return c.findings, nil
}

// Failed counts the checks that failed.
func Failed(findings []Finding) (n int) {
	for _, f := range findings {
		if f.Outcome == OutcomeFailed {
			n++
		}
	}
	return n
}

// check is a running check.
type check struct {
	Config
	wrong    registry.ERPSettings // with a wrong secret
	findings []Finding
}

func (c *check) add(name string, o Outcome, said, mend string) {
	c.findings = append(c.findings, Finding{Check: name, Outcome: o, Said: said, Mend: mend})
}

// fail adds a finding about an answer that should be another.
func (c *check) fail(name string, r call.Result, wanted string) {
	said, mend := c.explain(r)
	c.add(name, OutcomeFailed, said, strings.TrimSpace(mend+" "+wanted))
}

// failBatch is fail for the lines of a batch.
func (c *check) failBatch(r call.Result, wanted string) {
	said, mend := ExplainLines(r)
	c.add("disbursements", OutcomeFailed, said+c.quote(r.Answer), strings.TrimSpace(mend+" "+wanted))
}

// health reports whether the ERP was reached.
func (c *check) health(ctx context.Context) bool {
	r := c.Client.Health(ctx, c.Settings)
	if r.OK() {
		c.add("health", OutcomeOK, fmt.Sprintf("GET /health answered %d in %d ms.", r.Status, r.Duration.Milliseconds()), "")
		return true
	}
	c.fail("health", r, "GET /health with the agency's credentials is answered 2xx while the ERP works.")
	if r.Fault == "" {
		return true
	}
	c.add("others", OutcomeSkipped, "The other checks were not tried: the ERP gave no answer.", "")
	return false
}

// dues reads the dues of the subject and returns the usable ones.
func (c *check) dues(ctx context.Context) []erp.Due {
	dues, refused, r := c.Client.Dues(ctx, c.Settings, c.Subject)
	if !r.OK() {
		c.fail("dues", r, "GET /dues?subject_ref="+c.Subject+" is answered 200 with {\"items\": […]}, within 5 s, with at most 500 items and 1 MiB.")
		return nil
	}
	took := fmt.Sprintf("GET /dues answered %d items in %d ms.", len(dues)+len(refused), r.Duration.Milliseconds())
	switch {
	case r.Duration > slow:
		c.add("dues", OutcomeWarning, took, "Citizens wait for this answer: aim at less than a second. After 5 s it counts as unavailable.")
	case len(dues)+len(refused) == 0:
		c.add("dues", OutcomeWarning, took+" So nothing could be checked in them.", "Name a subject that owes something.")
	default:
		c.add("dues", OutcomeOK, took, "")
	}
	for _, item := range refused {
		name := fmt.Sprintf("items[%d]", item.Position)
		if item.Ref != "" {
			name += " (" + item.Ref + ")"
		}
		var faults []string
		for _, f := range item.Faults {
			faults = append(faults, f.Message)
		}
		c.add("dues.items", OutcomeFailed, name+" breaks the contract and cannot be paid.", strings.Join(faults, " "))
	}
	if len(refused) == 0 && len(dues) > 0 {
		c.add("dues.items", OutcomeOK, "Every due keeps the contract.", "")
	}
	for _, d := range dues {
		if d.DueDate.IsZero() {
			c.add("dues.due_date", OutcomeWarning, d.Ref+" has no due_date that is understood, so that citizens see none.", "Send due_date as a date such as 2026-03-31, unless the due has none.")
			break
		}
	}
	return dues
}

// unknownSubject asks for subjects that do not exist, the second with characters that must
// be encoded.
func (c *check) unknownSubject(ctx context.Context) {
	for _, name := range []string{"dues.unknown_subject", "dues.encoding"} {
		subject := "check-" + uuid.NewString()
		if name == "dues.encoding" {
			subject += " é/&=+%"
		}
		dues, refused, r := c.Client.Dues(ctx, c.Settings, subject)
		switch {
		case !r.OK():
			c.fail(name, r, "A subject_ref that the ERP does not know is answered 200 with {\"items\": []}; another status means that it is unknown whether the person owes anything.")
		case len(dues)+len(refused) > 0:
			c.add(name, OutcomeFailed, "A subject_ref that cannot exist has dues.", "Look up the whole value of subject_ref, decoded from its percent-encoding as UTF-8, and compare it exactly.")
		default:
			c.add(name, OutcomeOK, "An unknown subject has an empty list.", "")
		}
	}
}

// strangers calls with a wrong secret. The confirmation is empty, so that an ERP without
// protection books nothing.
func (c *check) strangers(ctx context.Context) {
	_, _, dues := c.Client.Dues(ctx, c.wrong, c.Subject)
	confirmed := c.Client.Confirm(ctx, c.wrong, uuid.NewString(), []byte("{}"))
	for _, s := range []struct {
		name, call string
		r          call.Result
		open       Outcome
	}{
		{"health.authentication", "GET /health", c.Client.Health(ctx, c.wrong), OutcomeWarning},
		{"dues.authentication", "GET /dues", dues, OutcomeFailed},
		{"confirmation.authentication", "POST /payment-confirmations", confirmed, OutcomeFailed},
	} {
		c.stranger(s.name, s.call, s.r, s.open)
	}
}

// stranger adds what a call with a wrong secret was answered. open is the outcome of one that is not refused.
func (c *check) stranger(name, path string, r call.Result, open Outcome) {
	switch {
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		c.add(name, OutcomeOK, fmt.Sprintf("%s with a wrong secret was answered %d.", path, r.Status), "")
	case r.OK(), r.Fault == erp.FaultInvalid, r.Fault == call.FaultTooLarge:
		c.add(name, open, path+" with a wrong secret was accepted.", "Compare the credentials of every call before anything else and answer 401: whoever finds this address reads what people owe and whom the agency pays, or books payments that never took place.")
	default:
		said, _ := c.explain(r)
		c.add(name, open, path+" with a wrong secret: "+said, "Answer 401 or 403, before the body is looked at.")
	}
}

func (c *check) disbursements(ctx context.Context) {
	batch := cmp.Or(c.Batch, "check-"+uuid.NewString())
	refused, first := 0, ""
	lines, r := c.lines(ctx, c.Settings, batch, func(i erp.LineItem) {
		if len(i.Faults) > 0 {
			refused++
			first = cmp.Or(first, i.Faults[0].Message)
		}
	})
	switch {
	case !r.OK() && c.Batch == "" && r.Fault == "" && r.Status == http.StatusNotFound:
		c.add("disbursements", OutcomeSkipped, "GET /disbursements was answered 404.", "Nothing to mend unless the agency pays batches out: then answer 200 with {\"items\": […]}.")
	case !r.OK():
		c.failBatch(r, "GET /disbursements?batch_ref=… is answered 200 with {\"items\": […]}, with an empty list for an unknown batch.")
	case c.Batch != "" && len(lines) == 0:
		c.add("disbursements", OutcomeFailed, "The batch has no lines.", "Name a batch that has some, or return its lines.")
	case refused > 0:
		c.add("disbursements", OutcomeFailed, fmt.Sprintf("%d of %d lines break the contract.", refused, len(lines)), first)
	default:
		c.add("disbursements", OutcomeOK, fmt.Sprintf("GET /disbursements answered %d lines.", len(lines)), "")
	}
	if !r.OK() {
		return
	}
	c.unknownBatch(ctx)
	_, stranger := c.lines(ctx, c.wrong, batch, func(erp.LineItem) {})
	c.stranger("disbursements.authentication", "GET /disbursements", stranger, OutcomeFailed)
	if c.Batch != "" && len(lines) > 0 {
		c.sameLines(ctx, lines)
	}
}

// lines asks for a batch and returns what it states of each line, in the ERP's order.
func (c *check) lines(ctx context.Context, as registry.ERPSettings, batch string, take func(erp.LineItem)) (lines [][sha256.Size]byte, r call.Result) {
	r, _ = c.Client.Disbursements(ctx, as, batch, func(i erp.LineItem) error { // which returns no error
		lines = append(lines, i.Hash())
		take(i)
		return nil
	})
	return lines, r
}

// unknownBatch asks for a batch that does not exist, with characters that must be encoded.
func (c *check) unknownBatch(ctx context.Context) {
	const name = "disbursements.unknown_batch"
	lines, r := c.lines(ctx, c.Settings, "check-"+uuid.NewString()+" é/&=+%", func(erp.LineItem) {})
	switch {
	case !r.OK():
		said, mend := ExplainLines(r)
		c.add(name, OutcomeFailed, said+c.quote(r.Answer), strings.TrimSpace(mend+" A batch_ref that the ERP does not know is answered 200 with {\"items\": []}."))
	case len(lines) > 0:
		c.add(name, OutcomeFailed, "A batch_ref that cannot exist has lines.", "Look up the whole value of batch_ref, decoded from its percent-encoding as UTF-8, and compare it exactly.")
	default:
		c.add(name, OutcomeOK, "An unknown batch has an empty list.", "")
	}
}

// sameLines asks for the batch once more, as the service does before it pays. The order may be another.
func (c *check) sameLines(ctx context.Context, before [][sha256.Size]byte) {
	const name = "disbursements.repeated"
	after, r := c.lines(ctx, c.Settings, c.Batch, func(erp.LineItem) {})
	order := func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(before, order)
	slices.SortFunc(after, order)
	switch {
	case !r.OK():
		said, mend := ExplainLines(r)
		c.add(name, OutcomeFailed, said+c.quote(r.Answer), strings.TrimSpace(mend+" The batch is asked for again before it is paid."))
	case !slices.Equal(before, after):
		c.add(name, OutcomeFailed, "Asked twice, the batch has other lines.", "Keep the lines of a batch as they are once it was asked for: before it is paid they are compared, and a batch with other lines is held. Order and metadata may differ.")
	default:
		c.add(name, OutcomeOK, "Asked twice, the batch has the same lines.", "")
	}
}
