package disbursements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/ingress/staff"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// step is what a passkey signs about a batch.
type step struct {
	verdict digest.Verdict
	may     identity.Permission
}

// steps are all that a passkey signs about a batch. A hold is lifted also by the maker, so it asks for the permission of those
// who hold.
var steps = []step{
	{digest.Approve, identity.MayApproveBatches},
	{digest.Reject, identity.MayApproveBatches},
	{digest.Release, identity.MayApproveBatches},
	{digest.Resume, identity.MayManageBatches},
}

// Fields of the forms about a batch.
const (
	fieldDigest = "digest" // that of what the page has shown
	fieldLevel  = "level"
	fieldReason = "reason"
)

// maxReason is the longest reason, in characters.
const maxReason = disbursement.MaxText

// level returns the level of a step about a batch as it is.
func (s step) level(b disbursements.Batch) int {
	switch s.verdict {
	case digest.Approve:
		return policy.Current(b.Sealing.Content.Levels, b.Sealing.Given())
	case digest.Release, digest.Resume:
		return b.Holds
	case digest.Reject:
	}
	return 0
}

// offered reports whether the person may take a step now. The processor decides when the person has signed.
func (s step) offered(v *visit, b disbursements.Batch, roster disbursement.Roster) bool {
	me := v.Acting.Person.ID
	p, known := roster.Find(me)
	if !v.may(s.may) || !known || !p.RevokedAt.IsZero() {
		return false
	}
	c := b.Sealing.Content
	switch s.verdict {
	case digest.Approve:
		_, err := policy.Counts(c.Levels, b.Sealing.Given(), b.Maker, s.level(b), me)
		return b.Status == disbursement.StatusSealed && err == nil
	case digest.Reject:
		listed := slices.ContainsFunc(c.Levels, func(l policy.Level) bool {
			return slices.ContainsFunc(l.Persons, func(a policy.Approver) bool { return a.ID == me })
		})
		return listed && (b.Status == disbursement.StatusSealed || b.Status == disbursement.StatusApproved)
	case digest.Release:
		return b.Status == disbursement.StatusApproved && b.AskedAt.IsZero() && !b.Held() && !roster.Same(me, b.Maker)
	case digest.Resume:
		return b.Held() && b.Status.Live()
	}
	return false
}

// offered returns the steps that the person may take now.
func (v *visit) offered(b disbursements.Batch, roster disbursement.Roster) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !s.offered(v, b, roster) })
}

// forms adds what the person may do, with the steps that are offered.
func (v *visit) forms(out *batchView, b disbursements.Batch, offered []step, paused []disbursements.PausedAccount, names namer) error {
	w, path := v.w, rootBatches+"/"+b.ID
	for _, s := range offered {
		x := w.Sign[string(s.verdict)]
		form := signForm{ID: string(s.verdict), Title: x.Title, Text: x.Text, Press: v.NewPress(path+"/"+string(s.verdict)+"/begin", path+"/"+string(s.verdict), x.Send)}
		form.Press.ID = "sign-" + string(s.verdict)
		form.Press.Hidden = map[string]string{fieldDigest: b.Digest.String(), fieldLevel: strconv.Itoa(s.level(b))}
		switch s.verdict {
		case digest.Reject:
			form.Press.Class = "bad"
			form.Press.Inputs = []staff.Input{{Name: fieldReason, Label: w.Reason, Hint: w.ReasonHint, Max: maxReason, Required: true}}
		case digest.Resume:
			first, err := v.d.cfg.Batches.FirstSignature(v.Context(), resumeKey(b), int64(b.Holds), v.Now)
			switch {
			case err != nil:
				return err
			case first == nil:
			case first.Signed.Person == v.Acting.Person.ID:
				form.Text, form.Press = fmt.Sprintf(w.LiftWaits, v.At(first.At)), nil
			default:
				form.Text = fmt.Sprintf(w.LiftSecond, names.name(first.Signed.Person, w.Unknown), v.At(first.At))
			}
		case digest.Release:
			if b.Source == disbursement.SourceERP {
				form.Text = w.ReleaseOfERP
			}
		case digest.Approve:
		}
		out.Signs = append(out.Signs, form)
	}
	act := func(name, class string, offered, reason bool) {
		if x := w.Acts[name]; offered {
			out.Acts = append(out.Acts, actForm{Name: name, Title: x.Title, Text: x.Text, URL: v.URL(path + "/" + name), Label: x.Send, Class: class, Reason: reason})
		}
	}
	unreleased := b.Status == disbursement.StatusSealed || b.Status == disbursement.StatusApproved
	manages := v.may(identity.MayManageBatches)
	act("hold", "bad", manages && !b.Held() && b.Status.Live() && b.Status != disbursement.StatusDraft, true)
	act("recall", "bad", v.may(identity.MayPrepareBatches) && unreleased && b.Maker == v.Acting.Person.ID, false)
	for _, a := range paused {
		if x := w.Acts["try"]; manages && a.Closed && b.Status == disbursement.StatusReleasing {
			out.Acts = append(out.Acts, actForm{
				Name: "try-" + a.Code, Title: fmt.Sprintf(x.Title, a.Code), Text: x.Text, URL: v.URL(path + "/accounts/" + a.Code + "/try"), Label: x.Send,
			})
		}
	}
	act("stop", "bad", manages && b.Status == disbursement.StatusReleasing && !b.Stopped, false)
	return nil
}

// differs returns a page of the lines that were compared with the digest, and says why nobody can sign a batch on these pages; empty
// for one that can be signed.
func (v *visit) differs(b disbursements.Batch, q disbursements.LineQuery) (shown []disbursements.OpenLine, said string, err error) {
	shown, found, err := v.d.cfg.Batches.CompareShown(v.Context(), v.d.cfg.Lines, b, q)
	if err != nil || len(found) == 0 {
		return shown, "", err
	}
	var parts []string
	for _, d := range found {
		parts = append(parts, v.w.Differences[string(d)])
	}
	return shown, fmt.Sprintf(v.w.Differs, strings.Join(parts, ", ")), nil
}

func resumeKey(b disbursements.Batch) disbursements.SignatureKey {
	return disbursements.SignatureKey{TenantID: b.TenantID, Kind: disbursements.SignResume, Live: b.Live, Batch: b.ID}
}

// prepare returns what a person signs of a batch: its statement, if the form is still of what the batch is, and the lines
// are those of its digest.
func (v *visit) prepare(s step, form url.Values) (b disbursements.Batch, statement digest.Hash, err error) {
	if b, err = v.read(v.Param("batch")); err != nil {
		return b, statement, err
	}
	if s.verdict == digest.Reject && !hasReason(form) {
		return b, statement, saidError(v.w.NoReason)
	}
	level := s.level(b)
	if b.SealedAt.IsZero() || form.Get(fieldDigest) != b.Digest.String() || form.Get(fieldLevel) != strconv.Itoa(level) {
		return b, statement, operation.Refuse("record.changed", "", nil)
	}
	_, said, err := v.differs(b, disbursements.LineQuery{})
	if err != nil {
		return b, statement, err
	}
	if said != "" {
		return b, statement, errDiffers
	}
	statement, err = digest.Step{Digest: b.Digest, Level: level, Person: v.Acting.Person.ID, Verdict: s.verdict}.Statement()
	return b, statement, err
}

// beginStep answers with the options with which the passkey signs a step.
func (v *visit) beginStep(s step) {
	b, statement, err := v.prepare(s, v.Form)
	v.challengeAbout(b, statement, err, "preparing a signature about a batch")
}

// challengeAbout answers with the options with which a passkey of the roster signs a statement about a batch, or with the error
// of making it.
func (v *visit) challengeAbout(b disbursements.Batch, statement digest.Hash, err error, doing string) {
	var options json.RawMessage
	if err == nil {
		var roster disbursement.Roster
		if _, roster, err = v.d.cfg.Batches.Agency(v.Context(), b.TenantID, b.Live); err == nil {
			options, err = v.d.cfg.Approvals.ChallengeOver(v.Context(), v.Acting, statement, keysOf(roster, v.Acting.Person.ID))
		}
	}
	if err != nil {
		v.answer(err, doing)
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// keysOf returns the hashes of the passkeys of a person of the roster; not nil.
func keysOf(r disbursement.Roster, id string) [][32]byte {
	out := [][32]byte{}
	p, _ := r.Find(id)
	for _, k := range p.Keys {
		if k.RemovedAt.IsZero() {
			out = append(out, k.Hash)
		}
	}
	return out
}

// takeStep takes a step that the passkey has signed, and answers where its end is shown.
func (v *visit) takeStep(s step) {
	form, response, err := v.ReadPress()
	if err != nil {
		v.answer(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	b, statement, err := v.prepare(s, form)
	var signed disbursement.Signed
	if err == nil {
		signed, err = v.d.cfg.Approvals.Sign(v.Context(), v.Acting, response, statement)
	}
	done := string(s.verdict)
	if err == nil {
		switch s.verdict {
		case digest.Approve:
			err = v.carryOut(b, disbursement.Approve{Level: s.level(b), Signed: signed})
		case digest.Reject:
			err = v.carryOut(b, disbursement.Reject{Reason: reasonOf(form), Signed: signed})
		case digest.Release:
			err = v.carryOut(b, disbursement.Release{Signed: signed})
		case digest.Resume:
			done, err = v.lift(b, signed)
		}
	}
	if err != nil {
		v.answer(err, "taking a signature about a batch")
		return
	}
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL(rootBatches+"/"+b.ID, "done", done)})
}

// lift keeps the first signature, or sends both. An earlier one of the same person is no second.
func (v *visit) lift(b disbursements.Batch, signed disbursement.Signed) (done string, err error) {
	k, number := resumeKey(b), int64(b.Holds)
	first, err := v.d.cfg.Batches.FirstSignature(v.Context(), k, number, v.Now)
	if err != nil {
		return "", err
	}
	if first == nil || first.Signed.Person == signed.Person {
		return "resume_first", v.keep(b.ID, disbursements.FirstSignature{SignatureKey: k, Number: number, Signed: signed, At: v.Now})
	}
	return "resume", v.carryOutBoth(b, disbursement.Lift{Signed: [2]disbursement.Signed{first.Signed, signed}}, k, number)
}

// carryOutBoth sends what two people have signed, and drops the first signature if it has served, or does not hold: the next
// begins again.
func (v *visit) carryOutBoth(b disbursements.Batch, do disbursement.Action, k disbursements.SignatureKey, number int64) error {
	err := v.carryOut(b, do)
	var said saidError
	if err == nil || errors.As(err, &said) {
		err = errors.Join(err, v.d.cfg.Batches.DropSignature(context.WithoutCancel(v.Context()), k, number))
	}
	return err
}

// keep stores the first of two signatures, about a batch or an agency.
func (v *visit) keep(subject string, f disbursements.FirstSignature) error {
	if err := v.d.cfg.Batches.KeepSignature(v.Context(), f); err != nil {
		return err
	}
	return v.Note(operation.Entry{Action: "batch.sign_first", Subject: subject, AgencyID: v.agency(), Detail: map[string]any{"kind": string(f.Kind), "mode": disbursement.Mode(f.Live), "number": f.Number}})
}

// carryOut sends a command about a batch and waits until the pages show what it has changed. A refusal is an saidError.
func (v *visit) carryOut(b disbursements.Batch, do disbursement.Action) error {
	a, err := v.send(b.Live, b.ID, do)
	if err != nil {
		return err
	}
	v.untilShown(a.Batch)
	if a.Refusal != nil {
		return saidError(v.refusal(*a.Refusal))
	}
	return nil
}

// errDiffers says that the lines are not those that are signed.
var errDiffers = errors.New("the lines of the batch are not those of its digest")

// saidError is a refusal in the words of the reader.
type saidError string

// Error returns the words.
func (e saidError) Error() string { return string(e) }

func reasonOf(form url.Values) string { return strings.TrimSpace(form.Get(fieldReason)) }

// hasReason reports whether a form has a reason that is not too long.
func hasReason(form url.Values) bool {
	n := utf8.RuneCountInString(reasonOf(form))
	return n > 0 && n <= maxReason
}

// answer tells the script of a page why something was not done.
func (v *visit) answer(err error, doing string) {
	var said saidError
	var refusal *operation.Error
	say := func(status int, text string) { v.AnswerJSON(status, map[string]string{"said": text}) }
	switch {
	case errors.Is(err, disbursements.ErrUnknown):
		v.Unknown()
	case errors.As(err, &said):
		say(http.StatusConflict, string(said))
	case errors.Is(err, errDiffers):
		say(http.StatusConflict, v.w.DiffersShort)
	case errors.Is(err, commands.ErrUnavailable):
		say(http.StatusServiceUnavailable, v.w.NoAnswer)
	case errors.As(err, &refusal):
		v.AnswerRefusal(staff.StatusOf(err), err)
	default:
		v.AnswerUnavailable(doing, err)
	}
}

// hold is POST /agency/batches/{batch}/hold.
func (v *visit) hold() {
	v.act("hold", func(b disbursements.Batch) (disbursement.Action, string) {
		if !hasReason(v.Form) {
			return nil, v.w.NoReason
		}
		return disbursement.SetHold{By: v.Acting.Person.ID, Reason: reasonOf(v.Form)}, ""
	})
}

// stop is POST /agency/batches/{batch}/stop.
func (v *visit) stop() {
	v.act("stop", func(disbursements.Batch) (disbursement.Action, string) {
		return disbursement.Stop{By: v.Acting.Person.ID}, ""
	})
}

// tryAccount is POST /agency/batches/{batch}/accounts/{account}/try.
func (v *visit) tryAccount() {
	v.act("try", func(disbursements.Batch) (disbursement.Action, string) {
		return disbursement.TryAccount{By: v.Acting.Person.ID, Account: v.Param("account")}, ""
	})
}

// recall is POST /agency/batches/{batch}/recall.
func (v *visit) recall() {
	v.act("recall", func(disbursements.Batch) (disbursement.Action, string) {
		return disbursement.Recall{By: v.Acting.Person.ID}, ""
	})
}

// act does what the session may do without a passkey: it pays nothing. of returns the command, or what is wrong with the
// reason.
func (v *visit) act(name string, of func(disbursements.Batch) (disbursement.Action, string)) {
	b, ok := v.batch()
	if !ok {
		return
	}
	do, fault := of(b)
	if fault != "" {
		v.writeBatch(http.StatusUnprocessableEntity, b, fieldReason, fault)
		return
	}
	v.answered(v.carryOut(b, do), name, rootBatches+"/"+b.ID, func(status int, fault string) {
		if now, failed := v.read(b.ID); failed == nil {
			b = now
		}
		v.writeBatch(status, b, "", fault)
	})
}

// answered answers a form that the session has sent: with the page at path, or again with what is wrong.
func (v *visit) answered(err error, done, path string, again func(status int, fault string)) {
	var said saidError
	switch {
	case err == nil:
		v.See(path, "done", done)
	case errors.Is(err, disbursements.ErrUnknown):
		v.Unknown()
	case errors.As(err, &said):
		again(http.StatusConflict, string(said))
	case errors.Is(err, commands.ErrUnavailable):
		again(http.StatusServiceUnavailable, v.w.NoAnswer)
	default:
		v.Failed("sending a command about a batch", err)
	}
}

// refusal returns the words of a refusal of the processor: the field and the mend.
func (v *visit) refusal(r disbursement.Refusal) string {
	w := v.w
	text, ok := w.Refusals[string(r.Code)+" "+r.Field] // some codes mean something else of another field
	if !ok {
		text, ok = w.Refusals[string(r.Code)]
	}
	if !ok {
		return fmt.Sprintf(w.RefusedBy, r.Code)
	}
	if r.Code == disbursement.CodePolicyFault || r.Code == disbursement.CodeRosterFault {
		return text + w.Colon + v.fault(r.Field)
	}
	return text
}
