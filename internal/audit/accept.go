package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"quittance/internal/form"
	"quittance/internal/operation"
)

// actionAccept is the action of an acceptance in the audit table.
const actionAccept = "audit.accept"

// maxReason is the longest reason of an acceptance, in characters.
const maxReason = 500

// Accept records that the actor knows of the findings with numbers from from to to: they were looked into, and what
// was lost was done again or is not needed. Verify then names them as accepted while they stay as they are: a row that
// is changed again is a new finding. Only a row that the topic proves is an acceptance. It returns what was accepted. A
// refusal is an *operation.Error with the field records or reason.
func Accept(ctx context.Context, cfg VerifyConfig, actor operation.Actor, from, to int64, reason string, now time.Time) ([]Finding, error) {
	if !form.IsLine(reason, maxReason) {
		return nil, operation.Refuse("audit.reason_malformed", "reason", operation.Args{"most": maxReason})
	}
	cfg.Since = time.Time{}
	v, err := Verify(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var accepted []Finding
	var marks []acceptance
	for _, f := range v.Findings {
		if f.Accepted || f.Sequence == 0 || f.Sequence < from || f.Sequence > to {
			continue
		}
		accepted = append(accepted, f)
		if n := len(marks); n > 0 && f.digest == "" && marks[n-1].fault == f.Fault && marks[n-1].to == f.Sequence-1 && marks[n-1].digest == "" {
			marks[n-1].to = f.Sequence
			continue
		}
		marks = append(marks, acceptance{f.Fault, f.Sequence, f.Sequence, f.digest})
	}
	if len(accepted) == 0 {
		return nil, operation.Refuse("audit.nothing_to_accept", "records", operation.Args{"from": from, "to": to})
	}
	texts := make([]string, len(marks))
	for i, m := range marks {
		texts[i] = m.String()
	}
	err = operation.Record(ctx, cfg.Pool, actor, now, operation.Entry{
		Action: actionAccept, Subject: span(from, to), Detail: map[string]any{"reason": reason, "accepted": texts},
	})
	return accepted, err
}

// acceptance is a text such as "missing 7-12" or "changed 9 8f02…".
type acceptance struct {
	fault    Fault
	from, to int64
	digest   string // of the row as it was accepted, hexadecimal
}

func (a acceptance) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", a.fault, span(a.from, a.to), a.digest))
}

func (a acceptance) covers(f Finding) bool {
	return a.fault == f.Fault && a.from <= f.Sequence && f.Sequence <= a.to && a.digest == f.digest
}

func span(from, to int64) string {
	if from == to {
		return strconv.FormatInt(from, 10)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// readAcceptance returns the acceptances in the detail of a row. What is none accepts nothing.
func readAcceptance(detail string) (out []acceptance) {
	var d struct{ Accepted []string }
	if json.Unmarshal([]byte(detail), &d) != nil {
		return nil
	}
	for _, text := range d.Accepted {
		fault, rest, _ := strings.Cut(text, " ")
		numbers, digest, _ := strings.Cut(rest, " ")
		first, last, several := strings.Cut(numbers, "-")
		from, err := strconv.ParseInt(first, 10, 64)
		to := from
		if several && err == nil {
			to, err = strconv.ParseInt(last, 10, 64)
		}
		if err == nil {
			out = append(out, acceptance{Fault(fault), from, to, digest})
		}
	}
	return out
}

// accept marks the findings that were accepted.
func (c *comparison) accept() {
	for i, f := range c.Findings {
		for _, a := range c.accepting {
			c.Findings[i].Accepted = c.Findings[i].Accepted || a.covers(f)
		}
	}
}
