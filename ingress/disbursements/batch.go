package disbursements

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/paper"
	"quittance/ingress/staff"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
)

// fromPosition is the condition of the list of lines: the number of its first line, from 1.
const fromPosition = "from"

// onlyCases is the condition that shows lines with an open case.
const onlyCases = "cases"

// batchView is the record of a batch.
type batchView struct {
	view
	State, StateClass     string
	OfERP                 string // what the ERP's part in the batch is; empty for a batch of a file
	Facts, Unsigned, Hold []staff.Fact
	// Paused says which accounts of the batch pay nothing, and why.
	Paused                  []string
	Accounts, Totals, Steps staff.Grid
	Levels                  []staff.Grid
	Lines                   staff.Grid
	LinesNote               string
	NextURL, FirstURL       string
	CasesURL, CasesText     string
	CertificateURL          string // of an approved batch
	// Differs says that nobody can sign here, and why; empty for a batch that may be signed, or that nobody signs now.
	Differs string
	Signs   []signForm
	Acts    []actForm
}

// signForm is a form that a passkey signs.
type signForm struct {
	ID, Title, Text string
	Press           *staff.Press
}

// actForm is a form that the session sends.
type actForm struct {
	Name, Title, Text, URL, Label, Class string
	Reason                               bool // it asks for one
}

// showBatch is GET /agency/batches/{batch}.
func (v *visit) showBatch() {
	if b, ok := v.batch(); ok {
		v.writeBatch(http.StatusOK, b, "", "")
	}
}

// writeBatch shows the record of a batch. fault is what is wrong with a form, whose field may be empty.
func (v *visit) writeBatch(status int, b disbursements.Batch, field, fault string) {
	w, path := v.w, rootBatches+"/"+b.ID
	if !v.Record("batch.read", b.ID, b.TenantID, nil) {
		return
	}
	people, err := v.d.cfg.Book.Read(v.Context(), v.Now)
	var roster disbursement.Roster
	if err == nil {
		_, roster, err = v.d.cfg.Batches.Agency(v.Context(), b.TenantID, b.Live)
	}
	var history []disbursements.Step
	if err == nil {
		history, err = v.d.cfg.Batches.Steps(v.Context(), b.ID)
	}
	var paused []disbursements.PausedAccount
	if err == nil && b.Status == disbursement.StatusReleasing {
		paused, err = v.d.cfg.Batches.PausedAccountsOf(v.Context(), b.Batch)
	}
	if err != nil {
		v.Failed("reading a batch", err)
		return
	}
	names := namer{people, roster}
	out := &batchView{view: v.page(fmt.Sprintf(w.BatchTitle, b.BatchRef, b.Revision), path)}
	out.BackURL, out.BackText = v.URL(rootBatches, fieldMode, disbursement.Mode(b.Live)), w.Title
	out.Test, out.Tagged, out.Command = !b.Live, fault == "", "quittance batches show "+b.ID
	if done := v.Query("done"); stillDone(done, b.Batch, paused) {
		out.Notice = w.Done[done]
		if done == string(digest.Release) && b.Source == disbursement.SourceERP && !b.AskedAt.IsZero() {
			out.Notice = w.DoneReleaseOfERP
		}
	}
	if fault != "" {
		out.Fault(field, fault, v.Form.Get(field))
	}
	out.State, out.StateClass = w.Statuses[string(b.Status)], stateClass(b.Status)
	if b.Held() {
		out.State, out.StateClass = out.State+w.Colon+w.Held, "not"
		out.Hold = []staff.Fact{{Label: w.Reason, Value: b.Hold.Reason}, {Label: w.HeldBy, Value: names.name(b.Hold.By, w.Service)}, {Label: w.Since, Value: v.At(b.Hold.Since)}}
	}
	for _, a := range paused {
		text := w.AccountPaused
		if a.Closed {
			text = w.AccountClosed
		}
		out.Paused = append(out.Paused, fmt.Sprintf(text, a.Code, cmp.Or(a.Reason, "–"), v.At(a.Since)))
	}
	out.OfERP = v.ofERP(b)
	out.Facts, out.Unsigned = v.facts(b, names), v.unsigned(b)
	if certified(b) {
		out.CertificateURL = v.URL(path + pathCertificate)
	}
	out.Accounts = staff.Grid{Caption: w.Accounts, Heads: []string{w.Account, w.Count, w.Sum}}
	for _, a := range v.content(b).Accounts {
		out.Accounts.Rows = append(out.Accounts.Rows, []staff.Cell{{Text: a.Code}, {Text: v.number(a.Count)}, {Text: v.sum(a.Sum, b.Currency), Class: staff.ClassSum}})
	}
	out.Levels = v.levels(b, names)
	out.Totals = staff.Grid{Caption: w.Totals, Heads: []string{w.Status, w.Count, w.Sum}}
	for _, s := range disbursement.LineStatuses() {
		if t := b.Lines.Of(s); t.Count > 0 {
			out.Totals.Rows = append(out.Totals.Rows, []staff.Cell{{Text: w.LineStatuses[string(s)]}, {Text: v.number(t.Count)}, {Text: v.sum(t.Sum, b.Currency), Class: staff.ClassSum}})
		}
	}
	out.Steps = v.history(history, names)
	if !v.Asks() { // what a page asks by itself changes neither lines nor forms
		if err := v.linesAndForms(out, b, roster, paused, names); err != nil {
			v.Failed("comparing a batch with what is signed", err)
			return
		}
	}
	v.Write(status, "batch", out)
}

// ofERP says that the lines are those of the ERP, and that a release waits for it.
func (v *visit) ofERP(b disbursements.Batch) string {
	switch {
	case b.Source != disbursement.SourceERP:
		return ""
	case !b.AskedAt.IsZero():
		return fmt.Sprintf(v.w.WaitsForERP, v.At(b.AskedAt))
	case b.ReleasedAt.IsZero() && b.Status.Live():
		return v.w.OfERP + " " + v.w.ERPIsAsked
	}
	return v.w.OfERP
}

func stateClass(s disbursement.Status) string {
	switch {
	case s == disbursement.StatusDone || s == disbursement.StatusReleasing || s == disbursement.StatusApproved:
		return "paid"
	case s.Void():
		return "not"
	}
	return ""
}

// content is what approvers sign; of a draft what is known so far.
func (v *visit) content(b disbursements.Batch) digest.Batch {
	if b.SealedAt.IsZero() {
		c := digest.Batch{BatchRef: b.BatchRef, Revision: b.Revision, Date: b.Date, Maker: b.Maker, Count: b.Count, Sum: b.Sum, Largest: b.Largest, Currency: b.Currency}
		for _, a := range b.Accounts {
			c.Accounts = append(c.Accounts, digest.Account{Code: a.Code, Fingerprint: a.Fingerprint, Count: a.Count, Sum: a.Sum})
		}
		return c
	}
	return b.Sealing.Content
}

// facts is what is approved, as it is signed.
func (v *visit) facts(b disbursements.Batch, names namer) []staff.Fact {
	w, c := v.w, v.content(b)
	out := []staff.Fact{
		{Label: w.Ref, Value: c.BatchRef, Code: true},
		{Label: w.RevisionLabel, Value: fmt.Sprint(c.Revision)},
		{Label: w.Mode, Value: v.mode(b.Live)},
		{Label: w.Date, Value: v.day(c.Date)},
		{Label: w.Count, Value: v.number(c.Count)},
		{Label: w.Sum, Value: v.sum(c.Sum, c.Currency)},
		{Label: w.Largest, Value: v.sum(c.Largest, c.Currency)},
		{Label: w.Maker, Value: names.name(c.Maker, w.Unknown)},
	}
	if !b.SealedAt.IsZero() {
		out = append(
			out,
			staff.Fact{Label: w.ApproveUntil, Value: v.At(c.ApproveUntil)},
			staff.Fact{Label: w.PayUntil, Value: v.day(c.PayUntil)},
			staff.Fact{Label: w.Digest, Value: inFours(b.Digest.String()), Code: true},
		)
	}
	return append(out, staff.Fact{Label: w.ID, Value: b.ID, Code: true})
}

// unsigned is what is known of the batch and not in its digest: nobody signs it.
func (v *visit) unsigned(b disbursements.Batch) []staff.Fact {
	var out []staff.Fact
	if b.Waiver != "" {
		out = append(out, staff.Fact{Label: v.w.Waiver, Value: b.Waiver})
	}
	if !b.SealedAt.IsZero() {
		out = append(out, staff.Fact{Label: v.w.SealedAt, Value: v.At(b.SealedAt)})
	}
	return out
}

// inFours writes a digest in groups of four characters, as people read it aloud.
func inFours(text string) string {
	var out []string
	for group := range slices.Chunk([]byte(text), 4) {
		out = append(out, string(group))
	}
	return strings.Join(out, " ")
}

// namer names people: those of the book, then by what the roster has.
type namer struct {
	people identity.People
	roster disbursement.Roster
}

// stillDone reports whether what a step did is so: an address is kept and loaded again, when the batch has gone on or was decided otherwise.
func stillDone(step string, b disbursement.Batch, paused []disbursements.PausedAccount) bool {
	switch step {
	case "import":
		return b.Status == disbursement.StatusDraft
	case "seal":
		return b.Status == disbursement.StatusSealed
	case "discard":
		return b.Status == disbursement.StatusDiscarded
	case "approve":
		return b.Status == disbursement.StatusSealed || b.Status == disbursement.StatusApproved
	case "reject":
		return b.Status == disbursement.StatusRejected
	case "release":
		return b.Status == disbursement.StatusReleasing && !b.Held() || !b.AskedAt.IsZero()
	case "hold", "resume_first":
		return b.Held()
	case "resume":
		return !b.Held()
	case "recall":
		return b.Status == disbursement.StatusRecalled
	case "stop":
		return b.Stopped
	case "try":
		return b.Status == disbursement.StatusReleasing && !slices.ContainsFunc(paused, func(a disbursements.PausedAccount) bool { return a.Closed })
	}
	return false
}

// name returns the name of a person, with the staff number; none for an empty id.
func (n namer) name(id, none string) string {
	if id == "" {
		return none
	}
	name := cmp.Or(n.people.Name(id), id)
	if p, ok := n.roster.Find(id); ok && p.Number != "" {
		name += " (" + p.Number + ")"
	}
	return name
}

// levels returns who is listed at each level, who has approved, and who is missing.
func (v *visit) levels(b disbursements.Batch, names namer) (out []staff.Grid) {
	w, all := v.w, b.Sealing.Content.Levels
	for i, l := range all {
		approved := 0
		g := staff.Grid{Heads: []string{w.Name, w.State}}
		for _, p := range l.Persons {
			name := staff.Cell{Text: names.name(p.ID, w.Unknown)}
			if p.For != "" {
				name.More = fmt.Sprintf(w.StandsFor, names.name(p.For, w.Unknown))
			}
			state := staff.Cell{Text: w.HasNot}
			for _, a := range b.Sealing.Approvals {
				switch {
				case a.Person == p.ID && a.Level == i+1:
					approved++
					state.Text = fmt.Sprintf(w.HasApproved, v.At(a.At))
				case a.Person == p.ID || a.For == p.ID || p.For != "" && (a.Person == p.For || a.For == p.For):
					state.Text = w.CountsElsewhere
				}
			}
			g.Rows = append(g.Rows, []staff.Cell{name, state})
		}
		g.Caption = fmt.Sprintf(w.Level, i+1, approved, l.Needed, l.Role)
		if missing := l.Needed - approved; missing > 0 && b.Status == disbursement.StatusSealed {
			g.Caption += w.Colon + fmt.Sprintf(w.Missing, missing)
		}
		out = append(out, g)
	}
	return out
}

// joined is steps of the same kind that follow each other: a large file is added, and sent, by 200 lines.
type joined struct {
	disbursements.Step       // the first, with the lines of all
	until              int64 // the offset of the last
}

// together joins steps of many lines that follow each other and say the same.
func together(list []disbursements.Step) (out []joined) {
	for _, s := range list {
		if n := len(out); n > 0 && s.Lines > 0 && s.Type == out[n-1].Type && s.Partition == out[n-1].Partition && maps.Equal(s.Detail, out[n-1].Detail) {
			out[n-1].Lines, out[n-1].until = out[n-1].Lines+s.Lines, s.Offset
			continue
		}
		out = append(out, joined{s, s.Offset})
	}
	return out
}

// history returns what happened, in order.
func (v *visit) history(list []disbursements.Step, names namer) staff.Grid {
	w := v.w
	g := staff.Grid{Caption: w.Timeline, Heads: []string{w.When, w.What, w.By, w.Place}}
	for _, s := range together(list) {
		what := staff.Cell{Text: cmp.Or(w.Steps[string(s.Type)], string(s.Type))}
		if s.Type == disbursement.EventPaused && s.Detail[disbursement.DetailClosed] != "" {
			what.Text = fmt.Sprintf(w.ClosedAccount, s.Detail[disbursement.DetailAccount])
		}
		if s.Lines > 0 {
			what.More = fmt.Sprintf(w.LinesChanged, v.number(s.Lines))
		}
		what.More = strings.TrimSpace(what.More + " " + s.Detail[disbursement.DetailReason])
		if reported := s.Detail[disbursement.DetailReported]; reported != "" {
			minor, _ := strconv.ParseInt(reported, 10, 64) // the processor writes a number
			what.More = strings.TrimSpace(what.More + " " + fmt.Sprintf(w.Reported, v.sum(minor, s.Detail[disbursement.DetailCurrency])))
		}
		if s.Detail[disbursement.DetailSource] == string(disbursement.FromStatement) {
			what.More = strings.TrimSpace(what.More + " " + w.Statements[s.Detail[disbursement.DetailWord]])
		}
		what.More = strings.TrimSpace(what.More + " " + s.Detail[disbursement.DetailReference])
		by := staff.Cell{Text: names.name(s.Detail[disbursement.DetailBy], "–")}
		if second := s.Detail[disbursement.DetailApprovedBy]; second != "" {
			by.More = names.name(second, "")
		}
		place := fmt.Sprintf("disbursement.events · %d · %d", s.Partition, s.Offset)
		if s.until > s.Offset {
			place += fmt.Sprintf("–%d", s.until)
		}
		g.Rows = append(g.Rows, []staff.Cell{{Text: v.At(s.At)}, what, by, {Text: place, Class: "code"}})
	}
	return g
}

// linesAndForms shows a page of the lines, and what the person may do. Who may sign gets the lines that were compared with the
// digest, and the forms only when all lines are those of it.
func (v *visit) linesAndForms(out *batchView, b disbursements.Batch, roster disbursement.Roster, paused []disbursements.PausedAccount, names namer) (err error) {
	first, _ := strconv.Atoi(v.Query(fromPosition)) // another text is the beginning
	first = max(first, 1)
	cases := v.Query(onlyCases) != ""
	q := disbursements.LineQuery{Cases: cases, From: first - 1, Size: pageSize + 1}
	var shown []disbursements.OpenLine
	offered := v.offered(b, roster)
	if len(offered) > 0 {
		shown, out.Differs, err = v.differs(b, q)
		if out.Differs != "" {
			offered = nil
		}
	} else if v.may(identity.MaySeeLines) {
		var list []disbursement.Line
		if list, err = v.d.cfg.Batches.Lines(v.Context(), b.ID, q); err == nil {
			shown, err = disbursements.Open(v.Context(), v.d.cfg.Lines, list)
		}
	}
	if err != nil {
		return err
	}
	v.lines(out, b, first, cases, shown)
	return v.forms(out, b, offered, paused, names)
}

// lines shows a page of lines from a number on, and one more if there is a next page, to those who may see them.
func (v *visit) lines(out *batchView, b disbursements.Batch, first int, cases bool, opened []disbursements.OpenLine) {
	w, path := v.w, rootBatches+"/"+b.ID
	if !v.may(identity.MaySeeLines) {
		out.LinesNote = w.LinesNotSeen
		return
	}
	var conditions []string
	switch {
	case cases:
		conditions = []string{onlyCases, "1"}
		out.CasesURL, out.CasesText = v.URL(path), w.AllLines
	default:
		out.CasesURL, out.CasesText = v.URL(path, onlyCases, "1"), w.OnlyCases
	}
	switch {
	case len(opened) > 0:
	case cases:
		out.LinesNote = w.NoCases
	default:
		out.LinesNote = w.NoLines
	}
	if len(opened) > pageSize {
		out.NextURL = v.URL(path, append(conditions, fromPosition, strconv.Itoa(opened[pageSize].Position+1))...)
		opened = opened[:pageSize]
	}
	if first > 1 {
		out.FirstURL = v.URL(path, conditions...)
	}
	out.Lines = staff.Grid{Caption: w.Lines, Heads: []string{w.Number, w.LineRef, w.Payee, w.Amount, w.Account, w.Status}}
	for _, l := range opened {
		status := staff.Cell{Text: w.LineStatuses[string(l.Status)], More: l.Code}
		if l.Case != "" || l.Contested {
			status.More = strings.TrimSpace(status.More + " " + w.LineCase)
		}
		number := staff.Cell{Text: strconv.Itoa(l.Position + 1), URL: v.URL(linePath(b, l.Position))}
		if !l.Opened {
			out.Lines.Rows = append(out.Lines.Rows, []staff.Cell{number, {Text: l.Ref}, {Text: w.NotOpened}, {Text: "–"}, {Text: "–"}, status})
			continue
		}
		c := l.Content
		ref := staff.Cell{Text: c.LineRef, More: c.Purpose}
		if c.Corrects != "" {
			ref.More = strings.TrimSpace(ref.More + " " + fmt.Sprintf(w.Corrects, c.Corrects))
		}
		out.Lines.Rows = append(out.Lines.Rows, []staff.Cell{
			number, ref,
			{Text: c.Name, More: paper.MaskedAccount(c)},
			{Text: v.sum(c.Amount, c.Currency), Class: staff.ClassSum},
			{Text: c.PayoutAccount, More: c.PaymentMode},
			status,
		})
	}
}
