package people

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/casework"
	"quittance/ingress/staff"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Fields of the forms about people.
const (
	fieldID      = "id" // of the request
	fieldKind    = "kind"
	fieldSubject = "subject"
	fieldShown   = "shown"
	fieldName    = "name"
	fieldNumber  = "number"
	fieldLost    = "lost"
	fieldChange  = "change"
	fieldAdd     = "add"
	fieldRemove  = "remove"
	fieldReason  = "reason"
	fieldDigits  = "digits"
)

const (
	// patience is how long a page waits for the end of a request.
	patience = 4 * time.Second
	// lookEvery is the time between two looks.
	lookEvery = 50 * time.Millisecond
)

// press returns the form of a kind of request.
func (v *visit) press(kind identity.PeopleKind, subject, shown, label string) *staff.Press {
	p := v.NewPress("people/ask/begin", "people/ask", label)
	p.Hidden = map[string]string{fieldID: uuid.NewString(), fieldKind: string(kind), fieldSubject: subject, fieldShown: shown}
	return p
}

// ending returns the form that withdraws or rejects.
func (v *visit) ending(kind identity.PeopleKind, subject, title, label string) *endForm {
	return &endForm{URL: v.URL("people/end"), ID: uuid.NewString(), Kind: string(kind), Subject: subject, Title: title, Label: label}
}

// requestOf returns what a form asks for.
func requestOf(form url.Values) identity.PeopleRequest {
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	roles := func(name string) (out []identity.Role) {
		for _, r := range form[name] {
			out = append(out, identity.Role(r))
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return identity.PeopleRequest{
		ID: text(fieldID), Kind: identity.PeopleKind(text(fieldKind)), Subject: text(fieldSubject), Shown: text(fieldShown),
		Body: identity.PeopleBody{
			Name: text(fieldName), Number: text(fieldNumber), Agency: text(fieldAgency), Lost: text(fieldLost) != "", Change: identity.StaffChangeKind(text(fieldChange)),
			Add: roles(fieldAdd), Remove: roles(fieldRemove), Reason: text(fieldReason), Digits: text(fieldDigits),
		},
	}
}

// begin is POST /people/ask/begin.
func (v *visit) begin() {
	r := requestOf(v.Form)
	if r.Kind == identity.PeopleRemovePasskey {
		r.Kind = "" // it has a page of its own
	}
	v.prepare(r)
}

// prepare answers with the options with which the passkey signs a request, or with where to go if it was sent before.
func (v *visit) prepare(r identity.PeopleRequest) {
	if before, err := v.p.cfg.Book.Request(v.Context(), v.Acting.Person.ID, r.ID); err == nil {
		v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL("requests/" + before.ID)})
		return
	}
	s, err := v.p.cfg.Book.Prepare(v.Context(), v.Acting, r, v.Now)
	var options json.RawMessage
	if err == nil {
		options, err = v.p.cfg.Approvals.Challenge(v.Context(), v.Acting, s)
	}
	if err != nil {
		v.answerRefusal(err, "preparing what a person asks for")
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// ask is POST /people/ask, with the form and the answer of a passkey to it.
func (v *visit) ask() {
	v.store(func(r *identity.PeopleRequest) bool {
		return r.Kind != identity.PeopleRemovePasskey && r.Kind.Pressed()
	})
}

// store stores what a passkey has signed, if it may be asked for here, and answers where its end is shown, or why it was
// refused.
func (v *visit) store(may func(*identity.PeopleRequest) bool) {
	form, answer, err := v.ReadPress()
	r := requestOf(form)
	if err != nil || !may(&r) {
		v.answerRefusal(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	a, err := v.p.cfg.Approvals.Answered(v.Context(), v.Acting, answer)
	var link secret.Text
	if err == nil {
		r, link, err = v.p.cfg.Book.Ask(v.Context(), a, r, v.Now)
	}
	if err == nil {
		r, err = v.wait(r)
	}
	if err != nil {
		v.answerRefusal(err, "asking for a change of people")
		return
	}
	var refusal *operation.Error
	if errors.As(r.Refusal(), &refusal) {
		// The form stays, and has another id for the next try.
		v.AnswerJSON(staff.StatusOf(refusal), map[string]string{"said": v.Refusal(v.inWords(refusal)), "again": uuid.NewString()})
		return
	}
	next := v.URL("requests/" + r.ID)
	if !link.Empty() {
		next += "#" + link.Reveal() // which the script shows and takes out of the address
	}
	v.AnswerJSON(http.StatusOK, map[string]string{"next": next})
}

// wait waits a short time for the end of a request.
func (v *visit) wait(r identity.PeopleRequest) (identity.PeopleRequest, error) {
	ctx, cancel := context.WithTimeout(v.Context(), patience)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for r.State == identity.PeopleWaiting {
		select {
		case <-ctx.Done():
			return r, nil
		case <-tick.C:
		}
		now, err := v.p.cfg.Book.Request(ctx, v.Acting.Person.ID, r.ID)
		if ctx.Err() != nil {
			return r, nil //nolint:nilerr // the time is over: the request is stored, and its page tells the end
		}
		if err != nil {
			return r, err
		}
		r = now
	}
	return r, nil
}

// end is POST /people/end: it withdraws an invitation or rejects a proposal, which needs no passkey.
func (v *visit) end() {
	r := requestOf(v.Form)
	var err error
	if r.Kind != identity.PeopleWithdraw && r.Kind != identity.PeopleReject {
		err = operation.Refuse("staff_request.unknown", "", nil)
	}
	if err == nil {
		r, _, err = v.p.cfg.Book.Ask(v.Context(), v.Acting, r, v.Now)
	}
	if err == nil {
		r, err = v.wait(r)
	}
	if err != nil {
		v.Failed("asking for a change of people", err)
		return
	}
	v.See("requests/" + r.ID)
}

// answerRefusal tells the script of the page why something was refused, or that the service cannot answer.
func (v *visit) answerRefusal(err error, doing string) {
	var refusal *operation.Error
	if !errors.As(err, &refusal) {
		v.AnswerUnavailable(doing, err)
		return
	}
	v.AnswerRefusal(staff.StatusOf(err), v.inWords(refusal))
}

// inWords returns a refusal whose arguments are words of the reader: states and roles have names.
func (v *visit) inWords(refusal *operation.Error) error {
	args := operation.Args{}
	for name, value := range refusal.Args {
		text, isText := value.(string)
		switch {
		case name == "state":
			args[name] = v.w.anyState(value)
		case isText && slices.Contains([]string{"role", "other", "roles"}, name):
			args[name] = v.roleNames(text)
		case isText && text == "operations" && (name == "group" || name == "own"):
			args[name] = v.w.Service
		default:
			args[name] = value
		}
	}
	return operation.Refuse(refusal.Code, refusal.Field, args)
}

// roleNames returns the names of roles that a refusal lists.
func (v *visit) roleNames(list string) string {
	if list == "" {
		return v.w.NoRoles
	}
	var out []identity.Role
	for _, name := range strings.Split(list, ", ") {
		out = append(out, identity.Role(name))
	}
	return v.roles(out)
}

// showInvitation is GET /people/invitations/{invitation}.
func (v *visit) showInvitation() {
	all, err := v.p.cfg.Book.Read(v.Context(), v.Now)
	if err != nil {
		v.Failed("reading people", err)
		return
	}
	n := slices.IndexFunc(all.Invitations, func(i identity.InvitationEntry) bool { return i.ID == v.Param("invitation") && v.sees(i.Of.AgencyID) })
	if n < 0 {
		v.Unknown()
		return
	}
	i, w := all.Invitations[n], v.w
	state := i.State(v.Now)
	out := &pressView{view: v.page(w.InvitationOf+i.Of.Name, "people/invitations/"+i.ID), Intro: w.InvitationStates[string(state)]}
	out.BackURL, out.BackText, out.Tagged = v.URL("people", fieldAgency, i.Of.AgencyID), w.Title, true
	out.Facts = []staff.Fact{
		{Label: w.Name, Value: i.Of.Name, URL: v.URL("people/" + i.StaffID)},
		{Label: w.Number, Value: i.Of.Number},
		{Label: w.Group, Value: v.group(i.Of.AgencyID)},
		{Label: w.State, Value: w.Stages[string(state)]},
		{Label: w.AtIssuer, Value: i.IssuerAddress},
		{Label: w.Subject, Value: i.Subject},
		{Label: w.Email, Value: i.Email},
		{Label: w.GetsRoles, Value: cmp.Or(v.roles(i.Roles), w.NoRoles)},
		{Label: w.HasRoles, Value: v.roles(i.Of.Roles)},
		{Label: w.InvitedBy, Value: cmp.Or(all.Name(i.InvitedBy), w.CommandLine)},
		{Label: w.InvitedAt, Value: v.At(i.InvitedAt)},
		{Label: w.Until, Value: v.At(i.EndsAt)},
	}
	out.Grid = staff.Grid{Caption: w.Passkeys, Heads: []string{w.Name, w.MadeAt}}
	for _, k := range i.Passkeys {
		out.Grid.Rows = append(out.Grid.Rows, []staff.Cell{{Text: k.Name}, {Text: v.At(k.CreatedAt)}})
	}
	me, may := v.Acting.Person.ID, v.decides(all, i.Of.AgencyID)
	out.Command = "quittance staff invitations"
	switch {
	case !i.Open(v.Now) || !may:
	case i.InvitedBy == me:
		out.Note = w.AnotherConfirms
	case i.StaffID == me:
		out.Note = w.OwnInvitation
	case state == identity.InvitationReady:
		out.Press = v.press(identity.PeopleConfirm, i.ID, i.Shown(), w.Confirm)
		out.Press.Inputs = []staff.Input{{Name: fieldDigits, Label: w.Digits, Hint: w.DigitsHint, Mode: "numeric", Max: 20, Required: true}}
		out.Command = refusing(all, i.Of.AgencyID, "quittance staff confirm "+i.ID+" --digits DIGITS")
	}
	if i.Open(v.Now) && may {
		out.End = v.ending(identity.PeopleWithdraw, i.ID, w.WithdrawTitle, w.Withdraw)
	}
	out.Note = strings.TrimSpace(out.Note + " " + v.note(all, i.Of.AgencyID))
	v.Write(http.StatusOK, "press", out)
}

// showChange is GET /people/changes/{change}.
func (v *visit) showChange() {
	all, err := v.p.cfg.Book.Read(v.Context(), v.Now)
	if err != nil {
		v.Failed("reading people", err)
		return
	}
	n := slices.IndexFunc(all.Changes, func(c identity.StaffChangeEntry) bool { return c.ID == v.Param("change") && v.sees(c.Of.AgencyID) })
	if n < 0 {
		v.Unknown()
		return
	}
	c, w := all.Changes[n], v.w
	out := &pressView{view: v.page(w.Kinds[string(c.Kind)]+w.Colon+c.Of.Name, "people/changes/"+c.ID)}
	out.BackURL, out.BackText, out.Tagged = v.URL("people/"+c.StaffID), c.Of.Name, true
	state := w.Stages[string(c.State)]
	if c.Forged {
		state = w.Forged
	}
	out.Facts = []staff.Fact{
		{Label: w.Name, Value: c.Of.Name, URL: v.URL("people/" + c.StaffID)},
		{Label: w.Number, Value: c.Of.Number},
		{Label: w.Group, Value: v.group(c.Of.AgencyID)},
		{Label: w.State, Value: state},
		{Label: w.HasRoles, Value: cmp.Or(v.roles(c.Of.Roles), w.NoRoles)},
		{Label: w.Add, Value: v.roles(c.Add)},
		{Label: w.Remove, Value: v.roles(c.Remove)},
		{Label: w.Reason, Value: c.Reason},
		{Label: w.AskedBy, Value: cmp.Or(c.Proposer, w.CommandLine)},
		{Label: w.Since, Value: v.At(c.ProposedAt)},
		{Label: w.DecidedBy, Value: all.Name(c.DecidedBy)},
	}
	if c.State == casework.DecisionProposed && !c.Forged && v.decides(all, c.Of.AgencyID) {
		title, label := w.RejectTitle, w.Reject
		if c.ProposedBy == v.Acting.Person.ID {
			title, label, out.Note = w.WithdrawTitle, w.WithdrawProposal, w.AnotherApproves
		} else {
			out.Press = v.press(identity.PeopleApprove, c.ID, c.Shown(), w.Approve)
			out.Intro = w.ApproveText
		}
		out.End = v.ending(identity.PeopleReject, c.ID, title, label)
		out.Note = strings.TrimSpace(out.Note + " " + w.NoCommand)
	}
	v.Write(http.StatusOK, "press", out)
}

// requestView says what became of a press.
type requestView struct {
	view
	Said, Class string
	// Link is the beginning of the link of an invitation. What follows is in the address, which the script reads.
	Link          string
	NextURL, Next string
}

// showRequest is GET /requests/{request}.
func (v *visit) showRequest() {
	r, err := v.p.cfg.Book.Request(v.Context(), v.Acting.Person.ID, v.Param("request"))
	if err != nil {
		v.Failed("reading a request", err)
		return
	}
	w := v.w
	out := &requestView{view: v.page(w.Requests[string(r.Kind)], "requests/"+r.ID), Said: w.RequestWaits}
	out.Tagged = true
	switch r.State {
	case identity.PeopleWaiting:
	case identity.PeopleDone:
		out.Said, out.Class = w.RequestDone, "paid"
	case identity.PeopleRefused:
		var refusal *operation.Error
		errors.As(r.Refusal(), &refusal)
		out.Said, out.Class = w.RequestRefused+" "+v.Refusal(v.inWords(refusal)), "not"
	}
	if r.Kind == identity.PeopleInvite && r.State != identity.PeopleRefused {
		out.Link = strings.TrimSuffix(v.p.cfg.URL, "/") + "/join#"
	}
	path := "people/" + r.Subject
	switch r.Kind {
	case identity.PeopleInvite:
		path = "people/invitations/" + r.ID
	case identity.PeopleConfirm, identity.PeopleWithdraw:
		path = "people/invitations/" + r.Subject
	case identity.PeoplePropose:
		path = "people/changes/" + r.ID
	case identity.PeopleApprove, identity.PeopleReject:
		path = "people/changes/" + r.Subject
	case identity.PeopleRemovePasskey:
		path = "passkeys"
	case identity.PeopleSuspend, identity.PeopleLift:
	}
	if r.State == identity.PeopleDone || r.Kind != identity.PeopleInvite && r.Kind != identity.PeoplePropose {
		out.NextURL, out.Next = v.URL(path), w.Open
	}
	v.Write(http.StatusOK, "request", out)
}

// passkeysView is the own passkeys.
type passkeysView struct {
	view
	Grid    staff.Grid
	Empty   string
	Removes []removal
}

type removal struct {
	Title string
	Press *staff.Press
}

// passkeys is GET /passkeys.
func (v *visit) passkeys() {
	w := v.w
	out := &passkeysView{view: v.page(w.OwnPasskeys, "passkeys"), Empty: w.NoPasskeys}
	out.Command = "quittance staff passkeys " + v.Acting.Person.ID
	keys := v.Acting.Person.InForcePasskeys()
	out.Grid = v.passkeyGrid(w.OwnPasskeys, keys)
	for n, k := range keys {
		if len(keys) < 2 {
			break
		}
		p := v.NewPress("passkeys/begin", "passkeys/remove", w.RemovePasskey)
		p.ID, p.Class = "remove-"+strconv.Itoa(n+1), "bad"
		p.Hidden = map[string]string{fieldID: uuid.NewString(), fieldKind: string(identity.PeopleRemovePasskey), fieldSubject: k.ID}
		out.Removes = append(out.Removes, removal{k.Name + ", " + v.At(k.CreatedAt), p})
	}
	v.Write(http.StatusOK, "passkeys", out)
}

// beginRemoval is POST /passkeys/begin.
func (v *visit) beginRemoval() {
	r := requestOf(v.Form)
	r.Kind, r.Body = identity.PeopleRemovePasskey, identity.PeopleBody{}
	v.prepare(r)
}

// remove is POST /passkeys/remove.
func (v *visit) remove() {
	v.store(func(r *identity.PeopleRequest) bool {
		r.Body = identity.PeopleBody{}
		return r.Kind == identity.PeopleRemovePasskey
	})
}
