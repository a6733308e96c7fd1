package disbursements

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/paper"
	"quittance/ingress/staff"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// Fields of the form with which a person decides about a line.
const (
	fieldOutcome   = "outcome"
	fieldReference = "reference"
)

// The outcomes of a line: it is paid, or no attempt can pay.
var (
	outcomePaid    = string(disbursement.ResolutionPaid)
	outcomeRefused = string(disbursement.ResolutionRefused)
)

// lineView is the record of a line.
type lineView struct {
	view
	State, StateClass, Case string
	Facts, Attempts         []staff.Fact
	Steps                   staff.Grid
	Differs                 string
	Signs                   []signForm
	DropURL                 string
	AdviceURL               string // of a paid line
	Acts                    []actForm
}

// lineOf reads the line that the address names, by its number from 1.
func (v *visit) lineOf(ctx context.Context) (b disbursements.Batch, l disbursements.OpenLine, err error) {
	if b, err = v.read(v.Param("batch")); err != nil {
		return b, l, err
	}
	number, err := strconv.Atoi(v.Param("line"))
	if err != nil {
		return b, l, disbursements.ErrUnknown
	}
	l, err = v.d.cfg.Batches.Line(ctx, v.d.cfg.Lines, b, number-1)
	return b, l, err
}

func linePath(b disbursements.Batch, position int) string {
	return fmt.Sprintf("%s/%s/lines/%d", rootBatches, b.ID, position+1)
}

// showLine is GET /agency/batches/{batch}/lines/{line}.
func (v *visit) showLine() { v.writeLine(http.StatusOK, "") }

// writeLine shows the record of a line. fault is what was wrong with a command.
func (v *visit) writeLine(status int, fault string) {
	b, l, err := v.lineOf(v.Context())
	if errors.Is(err, disbursements.ErrUnknown) {
		v.Unknown()
		return
	}
	people, roster := identity.People{}, disbursement.Roster{}
	if err == nil {
		people, err = v.d.cfg.Book.Read(v.Context(), v.Now)
	}
	if err == nil {
		_, roster, err = v.d.cfg.Batches.Agency(v.Context(), b.TenantID, b.Live)
	}
	var history []disbursements.Step
	if err == nil {
		history, err = v.d.cfg.Batches.LineSteps(v.Context(), b.ID, l.Position)
	}
	if err != nil {
		v.Failed("reading a line of a batch", err)
		return
	}
	if !v.Record("batch.read", b.ID, b.TenantID, map[string]any{"line": l.Position + 1}) {
		return
	}
	w, path := v.w, linePath(b, l.Position)
	out := &lineView{view: v.page(fmt.Sprintf(w.LineTitle, l.Position+1, b.BatchRef), path)}
	out.BackURL, out.BackText = v.URL(rootBatches+"/"+b.ID), fmt.Sprintf(w.BatchTitle, b.BatchRef, b.Revision)
	out.Test, out.Tagged, out.Command = !b.Live, fault == "", fmt.Sprintf("quittance batches lines %s --from %d --limit 1", b.ID, l.Position)
	if done := v.Query("done"); lineStillDone(done, l.Line) {
		out.Notice = w.Done[done]
	}
	if fault != "" {
		out.Fault("", fault, "")
	}
	out.State, out.StateClass = w.LineStatuses[string(l.Status)], lineClass(l.Line)
	out.Case = w.Cases[string(l.Case)]
	if l.Contested && l.Case == "" {
		out.Case = w.Cases[string(disbursement.CaseConflict)]
	}
	out.Facts, out.Attempts = v.lineFacts(b, l), v.attempts(l.Line)
	out.Steps = v.history(history, namer{people, roster})
	if advised(l) {
		out.AdviceURL = v.URL(path + pathAdvice)
	}
	if err := v.lineForms(out, b, l, roster, namer{people, roster}); err != nil {
		v.Failed("preparing what a person decides about a line", err)
		return
	}
	v.Write(status, "line", out)
}

func lineClass(l disbursement.Line) string {
	switch {
	case l.Doubtful() || l.Status == disbursement.LineRefused || l.Status == disbursement.LineReturned:
		return "not"
	case l.Status == disbursement.LinePaid:
		return "paid"
	}
	return ""
}

// lineFacts is what was approved of a line, and what it corrects.
func (v *visit) lineFacts(b disbursements.Batch, l disbursements.OpenLine) []staff.Fact {
	w := v.w
	var out []staff.Fact
	if c := l.Content; l.Opened {
		out = []staff.Fact{
			{Label: w.LineRef, Value: c.LineRef, Code: true},
			{Label: w.Amount, Value: v.sum(c.Amount, c.Currency)},
			{Label: w.Account, Value: c.PayoutAccount},
			{Label: w.Payee, Value: c.Name},
			{Label: w.PayeeAccount, Value: paper.MaskedAccount(c)},
			{Label: w.Purpose, Value: c.Purpose},
		}
	} else { // reference, amount and account of the row are not proven to be those of the leaf
		out = []staff.Fact{{Label: w.Payee, Value: w.NotOpened}}
	}
	link := func(label, ref string, k disbursement.LineKey) {
		if k == (disbursement.LineKey{}) {
			return
		}
		other := disbursements.Batch{Batch: disbursement.Batch{ID: k.Batch}}
		out = append(out, staff.Fact{Label: label, Value: cmp.Or(ref, fmt.Sprintf("%s · %d", k.Batch, k.Position+1)), URL: v.URL(linePath(other, k.Position))})
	}
	link(w.CorrectsLabel, l.CorrectsRef, l.Corrects)
	link(w.CorrectedBy, "", l.CorrectedBy)
	return out
}

// attempts is what became of a line.
func (v *visit) attempts(l disbursement.Line) []staff.Fact {
	w := v.w
	if l.Attempt == 0 {
		return nil
	}
	at := func(label string, when string) staff.Fact { return staff.Fact{Label: label, Value: when} }
	out := []staff.Fact{
		at(w.Attempt, strconv.Itoa(l.Attempt)),
		{Label: w.PayoutRef, Value: paper.PayoutRef(l), Code: true},
		at(w.SentAt, v.At(l.SentAt)),
	}
	if l.RequestedAt.After(l.SentAt) {
		out = append(out, at(w.RequestedAt, v.At(l.RequestedAt)))
	}
	if !l.EnquiredAt.IsZero() {
		out = append(out, at(w.EnquiredAt, v.At(l.EnquiredAt)))
	}
	if !l.EndedAt.IsZero() && l.Status != disbursement.LineSent && l.Status != disbursement.LineReady {
		out = append(out, at(w.EndedAt, v.At(l.EndedAt)))
	}
	if l.Doubt != 0 {
		out = append(out, at(w.DoubtLabel, strconv.Itoa(l.Doubt)))
	}
	return append(out, staff.Fact{Label: w.OperatorCode, Value: cmp.Or(w.Reasons[l.Code], l.Code), Code: w.Reasons[l.Code] == ""}, staff.Fact{Label: w.OperatorRef, Value: l.OperatorRef, Code: true})
}

// shown is a line as a person has seen it, for fieldShown: status, attempt, doubt and the number of the decision.
func shown(l disbursement.Line) string {
	return fmt.Sprintf("%s %d %d %d", l.Status, l.Attempt, l.Doubt, l.Settled+1)
}

// settles reports whether the person may decide about a line. The processor decides who counts.
func (v *visit) settles(b disbursements.Batch, l disbursement.Line, roster disbursement.Roster) bool {
	p, known := roster.Find(v.Acting.Person.ID)
	return l.Doubtful() && !b.SealedAt.IsZero() && v.may(identity.MayManageBatches) && known && p.RevokedAt.IsZero()
}

// lineForms adds what the person may do about a line.
func (v *visit) lineForms(out *lineView, b disbursements.Batch, l disbursements.OpenLine, roster disbursement.Roster, names namer) error {
	w, path, manages := v.w, linePath(b, l.Position), v.may(identity.MayManageBatches)
	if v.settles(b, l.Line, roster) {
		same, err := v.d.cfg.Batches.Approved(v.Context(), b, l)
		if err != nil {
			return err
		}
		if same {
			err = v.settleForms(out, b, l.Line, names)
		} else {
			out.Differs = fmt.Sprintf(w.Differs, w.Differences[string(disbursements.DifferentRoot)])
		}
		if err != nil {
			return err
		}
	}
	act := func(name, class string, offered bool) {
		if x := w.Acts[name]; offered && manages {
			out.Acts = append(out.Acts, actForm{Name: name, Title: x.Title, Text: x.Text, URL: v.URL(path + "/" + name), Label: x.Send, Class: class})
		}
	}
	released := b.Status == disbursement.StatusReleasing || b.Status == disbursement.StatusDone
	refused := released && l.Status == disbursement.LineRefused && !l.Contested
	act("retry", "", refused && !l.Unproven && !b.Stopped && !b.Overdue && l.CorrectedBy == (disbursement.LineKey{}))
	act("cancel", "bad", refused || released && l.Status == disbursement.LineReady)
	act("acknowledge", "", noted(l.Line))
	return nil
}

// noted reports whether a line's case moves no money, and one person ends it.
func noted(l disbursement.Line) bool {
	return l.Case == disbursement.CaseChanged || l.Case == disbursement.CaseUnopenable || l.Case == disbursement.CaseReturned
}

// settleForms adds the forms that a passkey signs: both outcomes, or the one that another person has signed.
func (v *visit) settleForms(out *lineView, b disbursements.Batch, l disbursement.Line, names namer) error {
	w, path := v.w, linePath(b, l.Position)
	first, err := v.d.cfg.Batches.FirstSignature(v.Context(), disbursements.SettleKey(b.Batch, l.Position), int64(l.Settled+1), v.Now)
	if err != nil {
		return err
	}
	add := func(outcome, text, reference string) {
		x := w.Sign["settle_"+outcome]
		f := signForm{ID: "settle-" + outcome, Title: x.Title, Text: text, Press: v.NewPress(path+"/settle/begin", path+"/settle", x.Send)}
		f.Press.ID = "sign-" + outcome
		f.Press.Hidden = map[string]string{fieldDigest: b.Digest.String(), fieldOutcome: outcome, fieldShown: shown(l)}
		if reference == "" {
			f.Press.Inputs = []staff.Input{{Name: fieldReference, Label: w.Evidence, Hint: w.EvidenceHint, Max: disbursement.MaxText, Required: true}}
		} else {
			f.Press.Hidden[fieldReference] = reference
		}
		out.Signs = append(out.Signs, f)
	}
	if first == nil || first.Settle == nil || first.Settle.Shown != shown(l) { // of the line as it was before: nobody signs that any more
		add(outcomePaid, w.Sign["settle_"+outcomePaid].Text, "")
		if x := w.Sign["settle_"+outcomeRefused]; l.Underway(v.Now) {
			out.Signs = append(out.Signs, signForm{ID: "settle-underway", Title: x.Title, Text: w.Refusals[string(disbursement.CodeUnderway)]})
		} else {
			add(outcomeRefused, x.Text, "")
		}
		return nil
	}
	out.DropURL = v.URL(path + "/settle/drop")
	outcome := outcomeOf(first.Settle.Paid)
	if first.Signed.Person == v.Acting.Person.ID {
		out.Signs = append(out.Signs, signForm{ID: "settle-waits", Title: w.Sign["settle_"+outcome].Title, Text: fmt.Sprintf(w.SettleWaits, v.At(first.At), first.Settle.Reference)})
		return nil
	}
	add(outcome, fmt.Sprintf(w.SettleSecond, names.name(first.Signed.Person, w.Unknown), v.At(first.At), first.Settle.Reference), first.Settle.Reference)
	return nil
}

func outcomeOf(paid bool) string {
	if paid {
		return outcomePaid
	}
	return outcomeRefused
}

// settlement is what a person signs about a line.
type settlement struct {
	batch     disbursements.Batch
	line      disbursement.Line
	paid      bool
	reference string
	statement digest.Hash
}

// prepareSettlement returns what a person signs about a line, if the form is still of what the line is, and the line is the
// approved one.
func (v *visit) prepareSettlement(form url.Values) (s settlement, err error) {
	b, l, err := v.lineOf(v.Context())
	if err != nil {
		return s, err
	}
	s = settlement{batch: b, line: l.Line, paid: form.Get(fieldOutcome) == outcomePaid, reference: strings.TrimSpace(form.Get(fieldReference))}
	outcome := form.Get(fieldOutcome)
	if b.SealedAt.IsZero() || form.Get(fieldDigest) != b.Digest.String() || form.Get(fieldShown) != shown(l.Line) || outcome != outcomePaid && outcome != outcomeRefused {
		return s, operation.Refuse("record.changed", "", nil)
	}
	same, err := v.d.cfg.Batches.Approved(v.Context(), b, l)
	switch {
	case err != nil:
		return s, err
	case !same:
		return s, errDiffers
	}
	s.statement, err = l.Settlement(b.Digest, s.paid, s.reference).Statement(v.Acting.Person.ID)
	if s.reference == "" || len(s.reference) > disbursement.MaxText || err != nil { // the error is that of a text that is not ASCII
		return s, saidError(v.w.NoEvidence)
	}
	return s, nil
}

// beginSettle answers with the options with which the passkey signs a decision about a line.
func (v *visit) beginSettle() {
	s, err := v.prepareSettlement(v.Form)
	v.challengeAbout(s.batch, s.statement, err, "preparing a signature about a line")
}

// takeSettle keeps the first signature about a line, or sends both.
func (v *visit) takeSettle() {
	form, response, err := v.ReadPress()
	if err != nil {
		v.answer(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	s, err := v.prepareSettlement(form)
	var signed disbursement.Signed
	if err == nil {
		signed, err = v.d.cfg.Approvals.Sign(v.Context(), v.Acting, response, s.statement)
	}
	done := ""
	if err == nil {
		done, err = v.settle(s, signed)
	}
	if err != nil {
		v.answer(err, "taking a signature about a line")
		return
	}
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL(linePath(s.batch, s.line.Position), "done", done)})
}

// settle keeps the first signature, or sends both if they are over the same. An earlier one of the same person is no second.
func (v *visit) settle(s settlement, signed disbursement.Signed) (done string, err error) {
	k, number := disbursements.SettleKey(s.batch.Batch, s.line.Position), int64(s.line.Settled+1)
	first, err := v.d.cfg.Batches.FirstSignature(v.Context(), k, number, v.Now)
	if err != nil {
		return "", err
	}
	proposed := disbursements.Settlement{Paid: s.paid, Reference: s.reference, Shown: shown(s.line)}
	switch {
	case first == nil || first.Settle == nil || first.Settle.Shown != proposed.Shown || first.Signed.Person == signed.Person:
		return "settle_first", v.keep(s.batch.ID, disbursements.FirstSignature{SignatureKey: k, Number: number, Settle: &proposed, Signed: signed, At: v.Now})
	case *first.Settle != proposed: // another person has proposed something else meanwhile
		return "", operation.Refuse("record.changed", "", nil)
	}
	do := disbursement.Settle{Position: s.line.Position, Paid: s.paid, Reference: s.reference, Signed: [2]disbursement.Signed{first.Signed, signed}}
	return "settle", v.carryOutBoth(s.batch, do, k, number)
}

// dropSettle is POST /agency/batches/{batch}/lines/{line}/settle/drop: a decision that waits for its second signature is dropped.
func (v *visit) dropSettle() {
	b, l, err := v.lineOf(v.Context())
	if err == nil {
		err = v.d.cfg.Batches.DropSignature(v.Context(), disbursements.SettleKey(b.Batch, l.Position), int64(l.Settled+1))
	}
	if err == nil {
		err = v.Note(operation.Entry{Action: "batch.drop_first", Subject: b.ID, AgencyID: v.agency(), Detail: map[string]any{"kind": string(disbursements.SignSettle), "line": l.Position + 1}})
	}
	v.answered(err, "dropped", linePath(b, l.Position), v.writeLine)
}

// actsOnLine are the commands about a line that one person sends without a passkey.
var actsOnLine = map[string]func(person string, position int) disbursement.Action{
	"retry": func(person string, position int) disbursement.Action {
		return disbursement.Retry{By: person, Position: position}
	},
	"cancel": func(person string, position int) disbursement.Action {
		return disbursement.Cancel{By: person, Position: position}
	},
	"acknowledge": func(person string, position int) disbursement.Action {
		return disbursement.Acknowledge{By: person, Position: position}
	},
}

// actOnLine sends a command about a line that the session may send: it moves no money that was not approved, and none twice.
func (v *visit) actOnLine(name string, of func(person string, position int) disbursement.Action) {
	b, l, err := v.lineOf(v.Context())
	if err == nil {
		err = v.carryOut(b, of(v.Acting.Person.ID, l.Position))
	}
	v.answered(err, name, linePath(b, l.Position), v.writeLine)
}

// lineStillDone reports whether what a step did with a line is so.
func lineStillDone(step string, l disbursement.Line) bool {
	switch step {
	case "settle_first":
		return l.Case != ""
	case "settle", "acknowledge", "dropped":
		return (l.Case == "") == (step != "dropped")
	case "retry":
		return l.Status == disbursement.LineReady || l.Status == disbursement.LineSent
	case "cancel":
		return l.Status == disbursement.LineCancelled
	}
	return false
}
