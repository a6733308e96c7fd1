package oversight

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/audit"
	"quittance/internal/contact"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/money/localtime"
)

// pageSize is the number of rows of a list.
const pageSize = 50

// Conditions of the list, by their names in the address. A session is named by its place.
const (
	byWho     = "who"
	byAction  = "action"
	bySubject = "subject"
	byPayment = "payment"
	byAgency  = "agency"
	byDay     = "day"
	byAfter   = "after"
)

var auditConditions = []string{byWho, byAction, bySubject, byPayment, byAgency, byDay}

// sessionID is a session id in a text, placeForm the place of a session, and harmlessName the name of a key, a role or the user of
// a machine, which may stand in an address. Names of people do not: their ids do.
var (
	sessionID    = regexp.MustCompile(checkout.PrefixSession + `[0-9A-Za-z]*`)
	placeForm    = regexp.MustCompile(`^[0-9a-z]{25}$`)
	harmlessName = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)
)

// conditions reads the conditions of the list from the address.
func (v *visit) conditions() map[string]string {
	out := map[string]string{}
	for _, name := range auditConditions {
		if value := v.Query(name); value != "" {
			out[name] = value
		}
	}
	return out
}

// query returns conditions as names and values in turn.
func query(chosen map[string]string, more ...string) (out []string) {
	for _, name := range auditConditions {
		if chosen[name] != "" {
			out = append(out, name, chosen[name])
		}
	}
	return append(out, more...)
}

// auditView is the list of rows of the audit table.
type auditView struct {
	view
	Path                     string // of the form with the conditions
	Actor, Subject           string // as people type them
	Chosen                   map[string]string
	Agencies                 []staff.Choice
	Filtered                 bool
	Grid                     staff.Grid
	Empty, NextURL, FirstURL string
	Proofs                   []string // commands
}

// newAudit returns the page with its form.
func (v *visit) newAudit(chosen map[string]string) *auditView {
	w, path := v.w.Audit, v.root(adminRoot)+"audit"
	out := &auditView{view: v.page(w.Title, path, query(chosen)...), Path: "/" + path, Chosen: chosen, Filtered: len(chosen) > 0, Actor: chosen[byWho], Subject: cmp.Or(chosen[byPayment], chosen[bySubject])}
	out.Agencies = v.agencies(chosen[byAgency])
	out.FirstURL = v.URL(path, query(chosen)...)
	return out
}

// audit is GET /admin/audit and /agency/audit.
func (v *visit) audit() {
	chosen := v.conditions()
	if id := sessionID.FindString(chosen[bySubject]); id != "" { // it opens the citizen's page, and must not stand in a link
		delete(chosen, bySubject)
		chosen[byPayment] = sessions.Place(id)
		v.See(v.root(adminRoot)+"audit", query(chosen)...)
		return
	}
	out := v.newAudit(chosen)
	name, err := v.o.cfg.Audit.Name(v.Context(), chosen[byWho])
	if err != nil {
		v.Unavailable("reading who acted", err)
		return
	}
	out.Actor = cmp.Or(name, out.Actor)
	f, known, err := v.filter(out)
	switch {
	case err != nil:
		v.Failed("reading a payment", err)
		return
	case len(out.Faults) > 0:
		v.Write(http.StatusUnprocessableEntity, "audit", out)
		return
	}
	var list []audit.Recorded
	if known {
		if list, err = v.o.cfg.Audit.List(v.Context(), f); err != nil {
			v.Failed("listing the audit table", err)
			return
		}
	}
	if len(list) > pageSize {
		list = list[:pageSize]
		out.NextURL = v.URL(v.root(adminRoot)+"audit", query(chosen, byAfter, f.Cursor(list[pageSize-1]))...)
	}
	if len(list) == 0 {
		out.Empty = v.w.Audit.None
		if out.Filtered {
			out.Empty = v.w.Audit.NoneSo
		}
	}
	if !v.showRows(out, list) {
		return
	}
	out.Tagged = true
	v.Write(http.StatusOK, "audit", out)
}

// filter returns the query of the conditions; known is false if they name a payment that is not there for the person. What is wrong
// with a condition is a fault of the page.
func (v *visit) filter(out *auditView) (f audit.Filter, known bool, err error) {
	chosen := out.Chosen
	f = audit.Filter{Who: chosen[byWho], Action: chosen[byAction], Subject: chosen[bySubject], AgencyID: chosen[byAgency], After: v.Query(byAfter), Limit: pageSize + 1}
	if !v.Acting.Service() {
		f.AgencyID = v.Acting.Person.AgencyID
	}
	if day := chosen[byDay]; day != "" {
		begin, err := localtime.Begin(day)
		if err != nil {
			out.Fault(byDay, v.w.Audit.DayMalformed, day)
			return f, false, nil
		}
		f.Since, f.Until = begin, begin.AddDate(0, 0, 1)
	}
	known = v.Acting.Service() || chosen[byAgency] == "" || chosen[byAgency] == f.AgencyID
	subject := f.Subject
	if place := chosen[byPayment]; place != "" {
		s, err := v.o.cfg.Sessions.AtPlace(v.Context(), place, v.applications())
		if errors.Is(err, sessions.ErrNotFound) {
			known, err = false, nil
		}
		if err != nil {
			return f, false, err
		}
		f.Subject, subject = s.ID, v.w.Audit.SessionInCommand
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	out.Command = staff.Command("quittance audit list", byWho, f.Who, byAction, f.Action, bySubject, subject, byAgency, v.slug(f.AgencyID), "since", at(f.Since), "until", at(f.Until))
	return f, known, nil
}

// chooseAudit is POST /admin/audit and /agency/audit: it turns what people type into conditions that may stand in an address.
func (v *visit) chooseAudit() {
	chosen := map[string]string{}
	for _, name := range []string{byWho, byAction, bySubject, byAgency, byDay} {
		if value := strings.TrimSpace(v.Form.Get(name)); value != "" {
			chosen[name] = value
		}
	}
	fault := func(field, message string) {
		out := v.newAudit(nil) // whose links have nothing of what is typed
		out.Chosen, out.Actor, out.Subject, out.Filtered = chosen, chosen[byWho], chosen[bySubject], true
		out.Fault(field, message, chosen[field])
		v.Write(http.StatusUnprocessableEntity, "audit", out)
	}
	if subject := chosen[bySubject]; subject != "" {
		_, phone := contact.ParsePhone(subject)
		id := sessionID.FindString(subject)
		switch {
		case id != "":
			delete(chosen, bySubject)
			chosen[byPayment] = sessions.Place(id)
		case placeForm.MatchString(subject):
			delete(chosen, bySubject)
			chosen[byPayment] = subject
		case phone == nil || strings.Contains(subject, "@") || strings.HasPrefix(subject, "+"):
			fault(bySubject, v.w.Audit.Contact)
			return
		}
	}
	if who := chosen[byWho]; who != "" {
		id, err := v.o.cfg.Audit.Person(v.Context(), who, v.Acting.Person.AgencyID)
		switch {
		case err != nil:
			v.Unavailable("reading who acted", err)
			return
		case id == "" && !harmlessName.MatchString(who):
			fault(byWho, v.w.Audit.NobodySo)
			return
		}
		chosen[byWho] = cmp.Or(id, who)
	}
	v.See(v.root(adminRoot)+"audit", query(chosen)...)
}

// showRows adds rows of the audit table with their proofs to the page; false after an answer.
func (v *visit) showRows(out *auditView, list []audit.Recorded) bool {
	proofs, err := v.o.cfg.Audit.Proofs(v.Context(), list)
	if err != nil {
		v.Unavailable("reading the proofs of the audit table", err)
		return false
	}
	out.Grid = v.rowGrid(v.w.Audit.Title, list, proofs)
	if len(list) > 0 {
		out.Proofs = []string{staff.Command("quittance audit verify", "since", list[len(list)-1].At.UTC().Truncate(time.Second).Format(time.RFC3339))}
	}
	subjects := map[string]bool{}
	for _, r := range list {
		if d := proofs[r.ID].Decision; d != nil {
			subject, _, _ := strings.Cut(d.Subject, "#")
			subjects[subject] = true
		}
	}
	for _, s := range slices.Sorted(maps.Keys(subjects)) {
		out.Proofs = append(out.Proofs, staff.Command("quittance decisions verify", "subject", s))
	}
	return true
}

// rowGrid returns rows of the audit table. An agency's people do not see from where somebody acted, who may be of the service.
func (v *visit) rowGrid(caption string, list []audit.Recorded, proofs map[int64]audit.Proof) staff.Grid {
	w := v.w.Audit
	g := staff.Grid{Caption: caption, Heads: []string{w.At, w.Who, w.Action, w.SubjectDetail, w.Proof}}
	for _, r := range list {
		who := staff.Cell{Text: cmp.Or(r.Person, r.Actor.Name), More: said(w.Kinds, string(r.Actor.Kind)), Class: staff.ClassWhole}
		if v.Acting.Service() && r.Actor.Origin != "" {
			who.More += " · " + r.Actor.Origin
		}
		did := staff.Cell{Text: r.Action, Class: staff.ClassWhole}
		if text := v.w.Actions[r.Action]; text != "" {
			did.Text, did.More = text, r.Action
		}
		if unanswered(r.Detail) {
			did.Text = fmt.Sprintf(w.NotKnown, did.Text)
		}
		g.Rows = append(g.Rows, []staff.Cell{{Text: v.At(r.At)}, who, did, v.subject(r), v.proof(proofs[r.ID])})
	}
	return g
}

// unanswered reports whether a row is of a command that had no answer in time: it may have been carried out, or not.
func unanswered(detail json.RawMessage) bool {
	var d struct{ Outcome string }
	return json.Unmarshal(detail, &d) == nil && d.Outcome == disbursements.OutcomeUnknown
}

// subject is what a row is about and its detail, with a link to its page if the person may see it.
func (v *visit) subject(r audit.Recorded) staff.Cell {
	out := staff.Cell{Text: cmp.Or(named(r.Subject), "–"), Class: "code", More: detail(r.Detail)}
	if v.Acting.Service() && r.AgencyID != "" {
		out.More = strings.Trim(v.agency(r.AgencyID)+"; "+out.More, "; ")
	}
	root := v.root(opsRoot)
	sees := v.Acting.May(identity.MaySeePayments, "") == nil
	switch {
	case sees && strings.HasPrefix(r.Subject, checkout.PrefixSession):
		out.URL = v.URL(root + "payments/" + sessions.Place(r.Subject))
	case sees && strings.HasPrefix(r.Subject, "case_"):
		out.URL = v.URL(root + "cases/" + r.Subject)
	case strings.HasPrefix(r.Action, "staff.") && r.Subject != "" && v.Acting.May(identity.MayManagePeople, "") == nil:
		out.URL = v.URL("people/" + r.Subject)
	}
	return out
}

// proof says what speaks for a row.
func (v *visit) proof(p audit.Proof) staff.Cell {
	w := v.w.Audit
	out := staff.Cell{Text: w.NotRecorded}
	if p.Number > 0 {
		out.Text = fmt.Sprintf(w.Recorded, p.Number)
	}
	if p.Signed {
		out.Text += w.AndSigned
	} else {
		out.Text += w.AndUnsigned
	}
	if d := p.Decision; d != nil {
		out.More = fmt.Sprintf(w.Pressed, d.Verdict, d.Subject)
	}
	return out
}

// named returns a text in which sessions are named by their places.
func named(text string) string { return sessionID.ReplaceAllStringFunc(text, sessions.Place) }

// detail returns the detail of a row as names and values.
func detail(raw json.RawMessage) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return named(string(raw))
	}
	parts := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var text string
		if json.Unmarshal(all[name], &text) != nil {
			var b bytes.Buffer
			if json.Compact(&b, all[name]) != nil {
				continue
			}
			text = b.String()
		}
		parts = append(parts, name+" "+text)
	}
	return named(strings.Join(parts, "; "))
}

// said returns the value of a name in a table of words, or the name itself, which a later release may have made.
func said(table map[string]string, name string) string { return cmp.Or(table[name], name) }

// trailRows is how many rows the record of a payment or a case shows.
const trailRows = 20

// Trail returns who has read and changed what a record of a page shows, the newest first, for whoever may see it; more is the address
// of all rows, for whoever may see the audit table. allowed is false for others.
func (o *Oversight) Trail(s *staff.Visit, subject string) (g staff.Grid, more string, allowed bool, err error) {
	v := o.visit(s)
	if v.Acting.May(identity.MaySeeTrail, "") != nil {
		return g, "", false, nil
	}
	list, err := o.cfg.Audit.List(v.Context(), audit.Filter{Subject: subject, Limit: trailRows})
	if err != nil {
		return g, "", true, err
	}
	proofs, err := o.cfg.Audit.Proofs(v.Context(), list)
	if err != nil {
		return g, "", true, err
	}
	if v.Acting.May(identity.MaySeeAudit, "") == nil {
		name, value := bySubject, subject
		if strings.HasPrefix(subject, checkout.PrefixSession) {
			name, value = byPayment, sessions.Place(subject)
		}
		more = v.URL(v.root(adminRoot)+"audit", name, value)
	}
	for i := range list {
		list[i].AgencyID = "" // it is that of the page
	}
	g = v.rowGrid(v.w.Audit.Trail, list, proofs)
	for _, row := range g.Rows { // the page says what it is about
		row[3] = staff.Cell{Text: cmp.Or(row[3].More, "–"), Class: row[3].Class}
	}
	g.Heads[3] = v.w.Audit.Detail
	return g, more, true, nil
}
