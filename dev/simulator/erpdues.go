package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Misbehaviours of an ERP, as POST /control/erp/{agency} takes them in the member misbehave.
const (
	// Of GET /dues and GET /disbursements.
	misbehaveHTML        = "html"                      // 200 with a page
	misbehaveOversized   = "oversized"                 // 5 MB
	misbehaveManyItems   = "many_items"                // 10,000 dues
	misbehaveDuplicates  = "duplicate_refs"            // the first due twice
	misbehaveMinimum     = "minimum_above_outstanding" // of every due
	misbehaveTextAmounts = "text_amounts"              // "5000" instead of 5000
	misbehaveUnknown404  = "unknown_subject_404"       // instead of an empty list
	// Of GET /disbursements.
	misbehaveDrifting = "drifting_lines" // the first line has another amount at each answer
	misbehaveShuffled = "shuffled_lines" // the lines begin with another one at each answer, as an ERP may have it
	// Of POST /payment-confirmations.
	misbehaveCountsTwice = "counts_twice"    // a repeated confirmation counts again
	misbehaveRepeatFails = "repeat_refused"  // a repeated confirmation is answered 422
	misbehaveInOrder     = "in_order_only"   // an earlier paid_at than the last is answered 422
	misbehaveBalances    = "balances_ignore" // balances stay as they are
	// Of all.
	misbehaveOpen = "no_authentication" // any credentials are accepted
)

var misbehaviours = []string{
	misbehaveHTML, misbehaveOversized, misbehaveManyItems, misbehaveDuplicates, misbehaveMinimum, misbehaveTextAmounts, misbehaveUnknown404,
	misbehaveDrifting, misbehaveShuffled, misbehaveCountsTwice, misbehaveRepeatFails, misbehaveInOrder, misbehaveBalances, misbehaveOpen,
}

func (c conduct) misbehaves(how string) bool { return slices.Contains(c.misbehave, how) }

const (
	oversized = 5 << 20
	manyItems = 10_000
)

// standardDue is a due of a standard subject. Nil members are left out.
func standardDue(ref, label string, outstanding, original int64, line any, more map[string]any) json.RawMessage {
	due := map[string]any{
		"erp_due_ref": ref, "label": label, "amount_minor": outstanding, "outstanding_minor": outstanding, "original_minor": original,
		"currency": "XAF", "allow_partial": false,
	}
	if line != nil {
		due["revenue_line_code"] = line
	}
	for name, value := range more {
		due[name] = value
	}
	return encoded(due)
}

func encoded(due map[string]any) json.RawMessage {
	text, err := json.Marshal(due)
	if err != nil {
		panic(fmt.Sprintf("encoding a due: %v", err)) // its values come from JSON
	}
	return text
}

// standardDues are the dues of the subjects that every simulated ERP has from the start. The
// codes 4711 and 4712 are mapped in the demo registry.
func standardDues(now time.Time) map[string][]json.RawMessage {
	day := func(days int) string { return now.AddDate(0, 0, days).Format(time.DateOnly) }
	return map[string][]json.RawMessage{
		// One whole, one partial with a minimum, one overdue.
		"TP-1001": {
			standardDue("TP-1001-A", "Contribution de la patente, exercice en cours", 50_000, 50_000, "4711", map[string]any{"due_date": day(30)}),
			standardDue("TP-1001-B", "Contribution foncière, solde", 120_000, 150_000, "4712", map[string]any{"due_date": day(60), "allow_partial": true, "minimum_amount_minor": 10_000}),
			standardDue("TP-1001-C", "Pénalité de retard", 15_000, 15_000, "4711", map[string]any{"due_date": day(-45)}),
		},
		// A mapped line, one without a mapping and none at all: the agency's default service,
		// or none. The service fields are the ERP's own, which nobody shows.
		"TP-1002": {
			standardDue("TP-1002-A", "Patente", 25_000, 25_000, "4711", map[string]any{"service_id": "ERP-1", "service_code": "ERP_PATENTE", "service_label": "Libellé de l’ERP"}),
			standardDue("TP-1002-B", "Redevance domaniale", 8_000, 8_000, "9999", nil),
			standardDue("TP-1002-C", "Droit fixe", 2_500, 2_500, nil, nil),
		},
		"TP-1003": {},
		// A broken one, with a minimum above the outstanding amount, among good ones.
		"TP-1004": {
			standardDue("TP-1004-A", "Taxe de voirie", 4_000, 4_000, "4711", nil),
			standardDue("TP-1004-B", "Taxe d’enseigne", 3_000, 3_000, "4711", map[string]any{"allow_partial": true, "minimum_amount_minor": 5_000}),
			standardDue("TP-1004-C", "Taxe de stationnement", 6_000, 6_000, "4712", map[string]any{"allow_partial": true, "minimum_amount_minor": 1_000}),
		},
		"TP-1005": {
			standardDue("TP-1005-A", "Visa, délivrance à l’étranger", 10_000, 10_000, nil, map[string]any{"currency": "EUR"}),
		},
		// What citizens are reminded of: a week and a day before the due date.
		"TP-1006": {
			standardDue("TP-1006-A", "Contribution de la patente, deuxième acompte", 35_000, 35_000, "4711", map[string]any{"due_date": day(7)}),
			standardDue("TP-1006-B", "Taxe sur les locaux loués, novembre", 12_500, 12_500, "4712", map[string]any{"due_date": day(1)}),
		},
	}
}

// StandardBatch is the batch_ref of the lines that every simulated ERP has from the start.
const StandardBatch = "BOURSES-2026-11"

// standardBatches are the batches that every simulated ERP has from the start: grants for payees whom the simulated operators
// pay at once.
func standardBatches() map[string][]json.RawMessage {
	people := []string{"Ngoma Jean", "Mabiala Chantal", "Okemba Prosper", "Mboungou Nadège", "Itoua Alphonse", "Samba Divine"}
	var lines []json.RawMessage
	for i, name := range people {
		mode, number := "MOBILE_MONEY", "+2420660100"
		if i%2 == 1 {
			mode, number = "AIRTEL", "+2420550100"
		}
		lines = append(lines, encoded(map[string]any{
			"line_ref": fmt.Sprintf("BOURSE-%03d", i+1), "beneficiary": map[string]any{"name": name, "msisdn": fmt.Sprintf("%s%02d", number, i+21)},
			"payment_mode": mode, "amount_minor": 45_000 + 2_500*i, "currency": "XAF", "purpose": "Bourse de novembre", "metadata": map[string]any{"dossier": fmt.Sprint(700 + i)},
		}))
	}
	return map[string][]json.RawMessage{StandardBatch: lines}
}

// list answers {"items": […]} with the items under the reference in the query; none for an
// unknown reference.
func (e *erp) list(w http.ResponseWriter, r *http.Request, param string, of func(*erp) map[string][]json.RawMessage, now conduct) {
	query := r.URL.Query()
	if len(query) != 1 || len(query[param]) != 1 || query.Get(param) == "" {
		writeCodedProblem(w, http.StatusBadRequest, "invalid_query", "The query must be "+param+"=… and nothing else.",
			fault{param, "must be given once, alone", "send ?" + param + "=<reference>"})
		return
	}
	e.mu.Lock()
	items, known := of(e)[query.Get(param)]
	items = append([]json.RawMessage{}, items...)
	if param == "batch_ref" && len(items) > 0 {
		e.asked++
		items = now.spoilLines(items, e.asked)
	}
	e.mu.Unlock()
	switch {
	case !known && now.misbehaves(misbehaveUnknown404):
		writeCodedProblem(w, http.StatusNotFound, "unknown_subject", "There is no such reference.")
		return
	case now.misbehaves(misbehaveHTML):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, "<!doctype html><title>Portail</title><p>Votre session a expiré.")
		return
	}
	items = now.spoil(items)
	if param == "batch_ref" && now.cut > 0 && now.cut < len(items) {
		breakAfter(w, items[:now.cut])
	}
	writeJSON(w, http.StatusOK, map[string]any{"items": items})
}

// breakAfter begins an answer with items and breaks the connection.
func breakAfter(w http.ResponseWriter, items []json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(items) // they are JSON
	_, _ = fmt.Fprintf(w, `{"items":%s`, bytes.TrimSuffix(text, []byte("]")))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// spoilLines returns the lines of a batch with the misbehaviours of its n-th answer.
func (c conduct) spoilLines(lines []json.RawMessage, n int) []json.RawMessage {
	if c.misbehaves(misbehaveDrifting) {
		lines[0] = edited(lines[0], func(line map[string]any) {
			if amount, ok := integerOf(line["amount_minor"]); ok {
				line["amount_minor"] = amount + int64(n)
			}
		})
	}
	if c.misbehaves(misbehaveShuffled) {
		lines = slices.Concat(lines[n%len(lines):], lines[:n%len(lines)])
	}
	return lines
}

// spoil returns items with the misbehaviours.
func (c conduct) spoil(items []json.RawMessage) []json.RawMessage {
	if c.misbehaves(misbehaveDuplicates) {
		items = append(items, slices.Clone(items[:min(1, len(items))])...)
	}
	for i, item := range items {
		items[i] = edited(item, func(due map[string]any) {
			if outstanding, ok := integerOf(due["outstanding_minor"]); ok && c.misbehaves(misbehaveMinimum) {
				due["allow_partial"], due["minimum_amount_minor"] = true, outstanding+1
			}
			for name, value := range due {
				if _, number := value.(json.Number); number && c.misbehaves(misbehaveTextAmounts) {
					due[name] = fmt.Sprint(value)
				}
			}
		})
	}
	switch {
	case c.misbehaves(misbehaveOversized):
		items = append(items, standardDue("OVERSIZED", strings.Repeat("x", oversized), 1, 1, nil, nil))
	case c.misbehaves(misbehaveManyItems):
		for i := range manyItems {
			items = append(items, standardDue("MANY-"+strconv.Itoa(i), "Taxe", 1000, 1000, nil, nil))
		}
	}
	return items
}

// edited returns an object with changes. It keeps what is no object, and the spelling of an
// object that does not change.
func edited(item json.RawMessage, change func(due map[string]any)) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()
	var due map[string]any
	if d.Decode(&due) != nil || due == nil {
		return item
	}
	before := encoded(due)
	change(due)
	if after := encoded(due); !bytes.Equal(before, after) {
		return after
	}
	return item
}

func integerOf(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	return i, err == nil
}

// book takes a confirmed amount off the due. The minimum of what is left is at most that. A
// due that the ERP does not know changes nothing. The caller holds mu.
func (e *erp) book(ref string, amount int64) {
	e.change(ref, func(due map[string]any) {
		outstanding, ok := integerOf(due["outstanding_minor"])
		if !ok {
			return
		}
		left := max(outstanding-amount, 0)
		due["outstanding_minor"] = left
		if _, ok := due["amount_minor"]; ok {
			due["amount_minor"] = left
		}
		if minimum, ok := integerOf(due["minimum_amount_minor"]); ok && minimum > left {
			due["minimum_amount_minor"] = left
		}
	})
}

// change changes the due with a reference and reports whether there is one. The caller holds
// mu.
func (e *erp) change(ref string, change func(due map[string]any)) bool {
	found := false
	for _, items := range e.dues {
		for i, item := range items {
			if !bytes.Contains(item, []byte(ref)) && !bytes.ContainsRune(item, '\\') {
				continue // the reference cannot be in it: most are not decoded
			}
			items[i] = edited(item, func(due map[string]any) {
				if due["erp_due_ref"] == ref {
					found = true
					change(due)
				}
			})
		}
	}
	return found
}

// remove removes the due with a reference. The caller holds mu.
func (e *erp) remove(ref string) {
	for subject, items := range e.dues {
		e.dues[subject] = slices.DeleteFunc(items, func(item json.RawMessage) bool {
			var due struct {
				Ref string `json:"erp_due_ref"`
			}
			return json.Unmarshal(item, &due) == nil && due.Ref == ref
		})
	}
}

// takeMisbehaviour takes the members away and misbehave of a control request.
func takeMisbehaviour(f *form, c *conduct) (changes bool) {
	changes = f.take("away", &c.away, "true or false")
	changes = f.integer("cut", &c.cut, 1, maxTimes) || changes
	expect := "a list of some of " + strings.Join(misbehaviours, ", ")
	changes = f.take("misbehave", &c.misbehave, expect) || changes
	for i, how := range c.misbehave {
		if !slices.Contains(misbehaviours, how) {
			f.fail(fmt.Sprintf("misbehave[%d]", i), fmt.Sprintf("%q is no misbehaviour", how), "send "+expect)
		}
	}
	return changes
}

// takeChanges takes the member change: fields of dues by erp_due_ref. Null removes a due.
func takeChanges(f *form) (changes map[string]map[string]json.RawMessage) {
	f.take("change", &changes, `an object such as {"TP-1001-A": {"outstanding_minor": 4000}}; null removes a due`)
	return changes
}

// apply changes dues. If it returns references that no due has, nothing has changed. The
// caller holds mu.
func (e *erp) apply(changes map[string]map[string]json.RawMessage) (unknown []string) {
	for ref := range changes {
		if !e.change(ref, func(map[string]any) {}) {
			unknown = append(unknown, ref)
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		return unknown
	}
	for ref, fields := range changes {
		if fields == nil {
			e.remove(ref)
			continue
		}
		e.change(ref, func(due map[string]any) {
			for name, value := range fields {
				due[name] = value
			}
		})
	}
	return nil
}
