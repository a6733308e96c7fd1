package disbursements

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/ingress/staff"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/money/localtime"
)

// Fields of the forms about people.
const (
	fieldKind   = "kind"   // of what is proposed
	fieldNumber = "number" // of the change
	fieldShown  = "shown"  // digest of what the page has shown of a proposal
	fieldPerson = "person"
	fieldRoles  = "roles"
	fieldOwn    = "own_roles" // of the proposer, among the first two
	fieldFor    = "for"
	fieldUntil  = "until"
)

// change is a change of people or policy that is proposed.
type change struct {
	kind   disbursements.SignatureKind
	live   bool
	people []disbursement.Enrolled
	policy *policy.Policy
}

// key names the change among those that wait.
func (c change) key(agency string) disbursements.SignatureKey {
	return disbursements.SignatureKey{TenantID: agency, Kind: c.kind, Live: c.live && c.kind == disbursements.SignPolicy}
}

// content is what is signed of the change.
func (c change) content() map[string]string {
	if c.kind == disbursements.SignPolicy {
		return disbursement.SetPolicy{Policy: *c.policy}.Content(c.live)
	}
	return disbursement.Enrol{People: c.people}.Content()
}

// statement is what a person signs of the change with a number.
func (c change) statement(agency string, number int64, person string) (digest.Hash, error) {
	return digest.Change{Agency: agency, Number: number, Content: c.content(), Person: person}.Statement()
}

// known is what the processor has told of an agency, and its people.
type known struct {
	namer
	agency disbursement.Agency
}

// known reads what is known of the person's agency in a mode.
func (v *visit) known(live bool) (k known, err error) {
	if k.people, err = v.d.cfg.Book.Read(v.Context(), v.Now); err == nil {
		k.agency, k.roster, err = v.d.cfg.Batches.Agency(v.Context(), v.agency(), live)
	}
	return k, err
}

// next is the number of the next change.
func (k known) next() int64 { return k.roster.Changes + 1 }

// first reports whether nobody is enrolled yet.
func (k known) first() bool { return len(k.roster.People) == 0 }

// person returns a member of an agency's staff with a staff number and two passkeys that approve, and the hashes of those that
// the roster does not have.
func (k known) person(agency, host, id string, now time.Time) (e identity.StaffEntry, keys [][32]byte, ok bool) {
	i := slices.IndexFunc(k.people.Staff, func(e identity.StaffEntry) bool { return e.ID == id && e.AgencyID == agency && e.InForce() })
	if i < 0 || k.people.Staff[i].Number == "" {
		return e, nil, false
	}
	e = k.people.Staff[i]
	member, _ := k.roster.Find(id)
	n := 0
	for _, p := range e.Passkeys {
		if p.Host != host || !p.Approves(now) || len(p.SPKIHash) != 32 {
			continue
		}
		n++
		hash := [32]byte(p.SPKIHash)
		if !slices.ContainsFunc(member.Keys, func(k policy.Key) bool { return k.Hash == hash }) {
			keys = append(keys, hash)
		}
	}
	return e, keys, n >= identity.MinPasskeys
}

// peopleView is the page of people and policy.
type peopleView struct {
	view
	Modes          []staff.Choice
	Roster         staff.Grid
	RosterEmpty    string
	Policies       []policyPart
	Waiting        []waitingPart
	PeopleForm     *staff.Press
	PeopleText     string
	PolicyForm     *staff.Press
	PolicyText     string
	Revocable      []staff.Choice
	RevokeURL      string
	NotAble        string
	LiveMode, Able bool
}

// policyPart is a policy, and from when it counts.
type policyPart struct {
	Title string
	Facts []staff.Fact
	Empty string
}

// waitingPart is a proposal that one person has signed.
type waitingPart struct {
	ID, Title, Text string
	Facts           []staff.Fact
	Press           *staff.Press
	DropURL         string
	Hidden          map[string]string
}

// showPeople is GET /agency/batches/people.
func (v *visit) showPeople() { v.writePeople(http.StatusOK, v.Query(fieldMode) != modeTest, "") }

func (v *visit) writePeople(status int, live bool, fault string) {
	k, err := v.known(live)
	if err != nil {
		v.Failed("reading people and policy of batches", err)
		return
	}
	w := v.w
	out := &peopleView{view: v.page(w.PeopleTitle, rootPeople, fieldMode, disbursement.Mode(live)), LiveMode: live}
	out.BackURL, out.BackText, out.Tagged, out.Test = v.URL(rootBatches, fieldMode, disbursement.Mode(live)), w.Title, fault == "", !live
	out.Notice = w.Done[v.Query("done")]
	if fault != "" {
		out.Fault("", fault, "")
	}
	out.Modes = []staff.Choice{{Value: modeLive, Label: w.Live, Chosen: live}, {Value: modeTest, Label: w.Test, Chosen: !live}}
	v.roster(out, k)
	out.Policies = v.policies(k)
	if err := v.waiting(out, k, live); err != nil {
		v.Failed("reading first signatures", err)
		return
	}
	if v.may(identity.MayManageBatches) {
		v.proposals(out, k, live)
	}
	v.Write(status, "signatories", out)
}

// roster shows the people as the processor has them.
func (v *visit) roster(out *peopleView, k known) {
	w := v.w
	out.Roster = staff.Grid{Caption: w.Roster, Heads: []string{w.Name, w.Roles, w.Delegation, w.Passkeys, w.State}}
	for _, p := range k.roster.People {
		counted, all, from := 0, 0, p.At.Add(policy.Settling)
		for _, key := range p.Keys {
			if !key.RemovedAt.IsZero() {
				continue
			}
			all++
			if at := key.At.Add(policy.Settling); !v.Now.Before(at) {
				counted++
			} else if at.After(from) {
				from = at
			}
		}
		state := staff.Cell{Text: w.InForce}
		switch {
		case !p.RevokedAt.IsZero():
			state.Text = fmt.Sprintf(w.Revoked, v.At(p.RevokedAt))
		case v.Now.Before(from):
			state.Text = fmt.Sprintf(w.CountsFrom, v.At(from))
		}
		delegation := "–"
		if p.For != "" {
			delegation = fmt.Sprintf(w.StandsUntil, k.name(p.For, w.Unknown), v.At(p.Until))
		}
		out.Roster.Rows = append(out.Roster.Rows, []staff.Cell{
			{Text: k.name(p.ID, w.Unknown)}, {Text: cmp.Or(strings.Join(p.Roles, ", "), w.NoRoles)}, {Text: delegation}, {Text: fmt.Sprintf(w.KeysCount, counted, all)}, state,
		})
	}
	if k.first() {
		out.RosterEmpty = w.RosterEmpty
	}
}

// policies are the policy in force and the one that follows it.
func (v *visit) policies(k known) (out []policyPart) {
	w := v.w
	now := k.agency.InForce(v.Now)
	part := policyPart{Title: w.PolicyNow}
	if now.Version == 0 {
		part.Empty = w.NoPolicy
	} else {
		part.Facts = v.policyFacts(now)
	}
	out = append(out, part)
	if v.Now.Before(k.agency.NextAt) {
		out = append(out, policyPart{Title: fmt.Sprintf(w.PolicyNext, v.At(k.agency.NextAt)), Facts: v.policyFacts(k.agency.Next)})
	}
	return out
}

// policyFacts shows a policy.
func (v *visit) policyFacts(p policy.Policy) []staff.Fact {
	w := v.w
	none := func(amount int64) string {
		if amount == 0 {
			return w.NoLimit
		}
		return v.sum(amount, p.Currency)
	}
	out := []staff.Fact{{Label: w.Currency, Value: p.Currency}}
	if p.Version > 0 {
		out = append(out, staff.Fact{Label: w.Version, Value: fmt.Sprint(p.Version)})
	}
	for i, t := range p.Tiers {
		upTo := w.NoBound
		if t.UpTo > 0 {
			upTo = fmt.Sprintf(w.UpTo, v.sum(t.UpTo, p.Currency))
		}
		out = append(out, staff.Fact{Label: fmt.Sprintf(w.Tier, i+1), Value: upTo + w.Colon + rulesText(t.Rules)})
	}
	return append(
		out,
		staff.Fact{Label: w.LineFrom, Value: none(p.LineFrom)},
		staff.Fact{Label: w.DayLimit, Value: none(p.DayLimit)},
		staff.Fact{Label: w.ApproveWithin, Value: fmt.Sprintf(w.Hours, int(p.ApproveWithin.Hours()))},
		staff.Fact{Label: w.PayWithin, Value: fmt.Sprintf(w.Days, p.PayWithinDays)},
		staff.Fact{Label: w.NameCheck, Value: w.NameChecks[string(p.NameCheck)]},
		staff.Fact{Label: w.Release, Value: w.Releases[string(p.Release)]},
	)
}

// rulesText writes levels as the form takes them: chef 1, directeur 2.
func rulesText(rules []policy.Rule) string {
	var out []string
	for _, r := range rules {
		out = append(out, fmt.Sprintf("%s %d", r.Role, r.Needed))
	}
	return strings.Join(out, ", ")
}

// proposed returns the change that a first signature is about.
func proposed(f *disbursements.FirstSignature) (change, bool) {
	c := change{kind: f.Kind, live: f.Live, people: f.People, policy: f.Policy}
	return c, c.kind == disbursements.SignPolicy && c.policy != nil || c.kind == disbursements.SignPeople && len(c.people) > 0
}

// shown is a digest of what a page shows of a change.
func (c change) shown(agency string, number int64) string {
	h, err := c.statement(agency, number, "-") // of nobody, so that it is no statement of a person
	if err != nil {
		return ""
	}
	return h.String()
}

// confirms reports whether the person may be the second to sign a change.
func (v *visit) confirms(k known, c change, first string) bool {
	me := v.Acting.Person.ID
	if !v.may(identity.MayManageBatches) || first == me {
		return false
	}
	if k.first() {
		return slices.ContainsFunc(c.people, func(e disbursement.Enrolled) bool { return e.ID == me })
	}
	p, ok := k.roster.Find(me)
	return ok && p.RevokedAt.IsZero()
}

// waiting shows the proposals that one person has signed.
func (v *visit) waiting(out *peopleView, k known, live bool) error {
	w := v.w
	for _, c := range []change{{kind: disbursements.SignPeople}, {kind: disbursements.SignPolicy, live: live}} {
		first, err := v.d.cfg.Batches.FirstSignature(v.Context(), c.key(v.agency()), k.next(), v.Now)
		if err != nil {
			return err
		}
		if first == nil {
			continue
		}
		proposal, ok := proposed(first)
		if !ok {
			continue
		}
		by := first.Signed.Person
		part := waitingPart{
			ID: string(c.kind), Title: w.Proposals[string(c.kind)], Text: fmt.Sprintf(w.ProposedBy, k.name(by, w.Unknown), v.At(first.At)),
			Hidden: map[string]string{fieldKind: string(c.kind), fieldMode: disbursement.Mode(live), fieldNumber: strconv.FormatInt(k.next(), 10), fieldShown: proposal.shown(v.agency(), k.next())},
		}
		if proposal.policy != nil {
			part.Facts = v.policyFacts(*proposal.policy)
		}
		for _, e := range proposal.people {
			part.Facts = append(part.Facts, v.enrolledFacts(k, e)...)
		}
		if v.confirms(k, proposal, by) {
			part.Press = v.NewPress(rootPeople+"/confirm/begin", rootPeople+"/confirm", w.ConfirmSend)
			part.Press.ID, part.Press.Hidden = "confirm-"+string(c.kind), part.Hidden
		} else if by == v.Acting.Person.ID {
			part.Text += " " + w.AnotherSigns
		}
		if v.may(identity.MayManageBatches) {
			part.DropURL = v.URL(rootPeople + "/drop")
		}
		out.Waiting = append(out.Waiting, part)
	}
	return nil
}

// enrolledFacts shows what is proposed of a person.
func (v *visit) enrolledFacts(k known, e disbursement.Enrolled) []staff.Fact {
	w := v.w
	out := []staff.Fact{
		{Label: w.Name, Value: cmp.Or(k.people.Name(e.ID), e.ID) + " (" + e.Number + ")"},
		{Label: w.Roles, Value: cmp.Or(strings.Join(e.Roles, ", "), w.NoRoles)},
		{Label: w.NewPasskeys, Value: fmt.Sprint(len(e.Keys))},
	}
	for _, key := range e.Keys {
		out = append(out, staff.Fact{Label: w.Fingerprint, Value: inFours(fmt.Sprintf("%x", key[:8])), Code: true})
	}
	if e.For != "" {
		out = append(out, staff.Fact{Label: w.Delegation, Value: fmt.Sprintf(w.StandsUntil, k.name(e.For, w.Unknown), v.At(e.Until))})
	}
	return out
}

// proposals adds the forms of those who may propose.
func (v *visit) proposals(out *peopleView, k known, live bool) {
	w, me := v.w, v.Acting.Person.ID
	_, _, able := k.person(v.agency(), v.Host(), me, v.Now)
	member, enrolled := k.roster.Find(me)
	if k.first() && !able || !k.first() && (!enrolled || !member.RevokedAt.IsZero()) {
		out.NotAble = w.NotAble
		if k.first() {
			out.NotAble = w.NotAbleFirst
		}
		return
	}
	out.Able = true
	var options, members []staff.Option
	for _, e := range k.people.Staff {
		if _, _, ok := k.person(v.agency(), v.Host(), e.ID, v.Now); ok && !(k.first() && e.ID == me) {
			options = append(options, staff.Option{Value: e.ID, Label: e.Name + " (" + e.Number + ")"})
		}
	}
	members = append(members, staff.Option{Label: w.ForNobody})
	for _, p := range k.roster.People {
		if p.RevokedAt.IsZero() {
			members = append(members, staff.Option{Value: p.ID, Label: k.name(p.ID, p.ID)})
			out.Revocable = append(out.Revocable, staff.Choice{Value: p.ID, Label: k.name(p.ID, p.ID)})
		}
	}
	out.RevokeURL = v.URL(rootPeople + "/revoke")
	hidden := func(kind disbursements.SignatureKind) map[string]string {
		return map[string]string{fieldKind: string(kind), fieldMode: disbursement.Mode(live), fieldNumber: strconv.FormatInt(k.next(), 10)}
	}
	out.PeopleText = w.PeopleText
	if k.first() {
		out.PeopleText = w.FirstText
	}
	if len(options) == 0 {
		out.PeopleText += " " + w.NobodyElse
	} else {
		p := v.NewPress(rootPeople+"/propose/begin", rootPeople+"/propose", w.ProposeSend)
		p.ID, p.Hidden = "propose-people", hidden(disbursements.SignPeople)
		roles := staff.Input{Name: fieldRoles, Label: w.Roles, Hint: w.RolesHint, Max: 200}
		if k.first() {
			p.Inputs = []staff.Input{{Name: fieldOwn, Label: w.OwnRoles, Hint: w.RolesHint, Max: 200}, {Name: fieldPerson, Label: w.SecondPerson, Hint: w.PersonHint, Options: options, Required: true}, roles}
		} else {
			p.Inputs = []staff.Input{
				{Name: fieldPerson, Label: w.Person, Hint: w.PersonHint, Options: options, Required: true},
				roles,
				{Name: fieldFor, Label: w.For, Hint: w.ForHint, Options: members},
				{Name: fieldUntil, Label: w.Until, Hint: w.UntilHint, Max: 10},
			}
		}
		out.PeopleForm = p
	}
	if k.first() {
		return
	}
	p := v.NewPress(rootPeople+"/propose/begin", rootPeople+"/propose", w.ProposeSend)
	p.ID, p.Hidden, p.Inputs = "propose-policy", hidden(disbursements.SignPolicy), v.policyInputs(k.agency)
	out.PolicyForm, out.PolicyText = p, w.PolicyText
}

// changeOf reads what a form proposes. The error is an saidError, or record.changed when somebody else has changed people or
// policy since the page was shown.
func (v *visit) changeOf(form url.Values) (k known, c change, err error) {
	c = change{kind: disbursements.SignatureKind(form.Get(fieldKind)), live: form.Get(fieldMode) != modeTest}
	if k, err = v.known(c.live); err != nil {
		return k, c, err
	}
	if form.Get(fieldNumber) != strconv.FormatInt(k.next(), 10) {
		return k, c, operation.Refuse("record.changed", "", nil)
	}
	switch c.kind {
	case disbursements.SignPolicy:
		p, said := v.policyOf(form, k.agency)
		if said != "" {
			return k, c, saidError(said)
		}
		c.policy = &p
	case disbursements.SignPeople:
		c.people, err = v.peopleOf(form, k)
	default:
		return k, c, operation.Refuse("record.changed", "", nil)
	}
	return k, c, err
}

// peopleOf reads the people that a form proposes.
func (v *visit) peopleOf(form url.Values, k known) (out []disbursement.Enrolled, err error) {
	ids, roles := []string{form.Get(fieldPerson)}, []string{form.Get(fieldRoles)}
	if k.first() {
		ids, roles = []string{v.Acting.Person.ID, ids[0]}, []string{form.Get(fieldOwn), roles[0]}
	}
	for i, id := range ids {
		person, keys, ok := k.person(v.agency(), v.Host(), id, v.Now)
		if !ok || i > 0 && id == ids[0] {
			return nil, saidError(v.w.PersonFault)
		}
		e := disbursement.Enrolled{ID: person.ID, Number: person.Number, Keys: keys}
		for _, role := range strings.FieldsFunc(roles[i], func(r rune) bool { return r == ',' || r == ';' }) {
			if role = strings.TrimSpace(role); role != "" && !slices.Contains(e.Roles, role) {
				e.Roles = append(e.Roles, role)
			}
		}
		if slices.ContainsFunc(e.Roles, func(role string) bool { return !plainRole(role) }) {
			return nil, saidError(v.w.RolesFault)
		}
		slices.Sort(e.Roles)
		if of := form.Get(fieldFor); of != "" && !k.first() {
			until, err := localtime.Begin(strings.TrimSpace(form.Get(fieldUntil)))
			if member, ok := k.roster.Find(of); err != nil || !ok || !member.RevokedAt.IsZero() || of == id || !until.After(v.Now) {
				return nil, saidError(v.w.DelegationFault)
			}
			e.For, e.Until = of, until.UTC()
		}
		out = append(out, e)
	}
	return out, nil
}

// plainRole reports whether a text can be a role of a roster.
func plainRole(role string) bool {
	return len(role) <= 40 && !strings.ContainsFunc(role, func(r rune) bool { return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}

// asked returns the passkeys with which the person signs changes: those of the roster, or any for the first two people.
func (v *visit) asked(k known) [][32]byte {
	if k.first() {
		return nil
	}
	return keysOf(k.roster, v.Acting.Person.ID)
}

// challenge answers with the options with which the passkey signs a change.
func (v *visit) challenge(k known, c change) {
	statement, err := c.statement(v.agency(), k.next(), v.Acting.Person.ID)
	var options json.RawMessage
	if err == nil {
		options, err = v.d.cfg.Approvals.ChallengeOver(v.Context(), v.Acting, statement, v.asked(k))
	}
	if err != nil {
		v.answer(err, "preparing a change of people or policy")
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// sign returns what the passkey has signed of a change.
func (v *visit) sign(k known, c change, response []byte) (disbursement.Signed, error) {
	statement, err := c.statement(v.agency(), k.next(), v.Acting.Person.ID)
	if err != nil {
		return disbursement.Signed{}, err
	}
	return v.d.cfg.Approvals.Sign(v.Context(), v.Acting, response, statement)
}

// beginProposal is POST /agency/batches/people/propose/begin.
func (v *visit) beginProposal() {
	k, c, err := v.changeOf(v.Form)
	if err != nil {
		v.answer(err, "preparing a change of people or policy")
		return
	}
	v.challenge(k, c)
}

// propose is POST /agency/batches/people/propose: it keeps the first signature.
func (v *visit) propose() {
	form, response, err := v.ReadPress()
	if err != nil {
		v.answer(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	k, c, err := v.changeOf(form)
	var signed disbursement.Signed
	if err == nil {
		signed, err = v.sign(k, c, response)
	}
	if err == nil {
		err = v.keep(v.agency(), disbursements.FirstSignature{
			SignatureKey: c.key(v.agency()), Number: k.next(), People: c.people, Policy: c.policy, Signed: signed, At: v.Now,
		})
	}
	if err != nil {
		v.answer(err, "proposing a change of people or policy")
		return
	}
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL(rootPeople, fieldMode, disbursement.Mode(c.live), "done", "proposed")})
}

// proposalOf returns the proposal that a form is about, if it is the one that the page has shown and the person may be the
// second to sign it.
func (v *visit) proposalOf(form url.Values) (k known, c change, first *disbursements.FirstSignature, err error) {
	c = change{kind: disbursements.SignatureKind(form.Get(fieldKind)), live: form.Get(fieldMode) != modeTest}
	if k, err = v.known(c.live); err == nil {
		first, err = v.d.cfg.Batches.FirstSignature(v.Context(), c.key(v.agency()), k.next(), v.Now)
	}
	if err != nil {
		return k, c, nil, err
	}
	changed := operation.Refuse("record.changed", "", nil)
	if first == nil {
		return k, c, nil, changed
	}
	live := c.live
	c, ok := proposed(first)
	c.live = live
	if !ok || c.shown(v.agency(), k.next()) != form.Get(fieldShown) {
		return k, c, nil, changed
	}
	if !v.confirms(k, c, first.Signed.Person) {
		return k, c, nil, saidError(v.w.Refusals[string(disbursement.CodeNeedsTwo)])
	}
	return k, c, first, nil
}

// beginConfirmation is POST /agency/batches/people/confirm/begin.
func (v *visit) beginConfirmation() {
	k, c, _, err := v.proposalOf(v.Form)
	if err != nil {
		v.answer(err, "preparing a change of people or policy")
		return
	}
	v.challenge(k, c)
}

// confirm is POST /agency/batches/people/confirm: the second signature, with which the change goes to the processor.
func (v *visit) confirm() {
	form, response, err := v.ReadPress()
	if err != nil {
		v.answer(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	k, c, first, err := v.proposalOf(form)
	var signed disbursement.Signed
	if err == nil {
		signed, err = v.sign(k, c, response)
	}
	if err == nil {
		err = v.agree(k, c, []disbursement.Signed{first.Signed, signed})
	}
	if err != nil {
		v.answer(err, "changing people or policy")
		return
	}
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL(rootPeople, fieldMode, disbursement.Mode(c.live), "done", "changed")})
}

// agree sends a change that two people have signed, and waits until the pages show it.
func (v *visit) agree(k known, c change, confirmed []disbursement.Signed) error {
	var do disbursement.Action = disbursement.Enrol{People: c.people, Confirmed: confirmed}
	switch {
	case c.kind == disbursements.SignPolicy:
		do = disbursement.SetPolicy{Policy: *c.policy, Confirmed: confirmed}
	case k.first():
		do = disbursement.Enrol{People: c.people, RPID: v.Host(), Origin: v.d.cfg.URL, Confirmed: confirmed}
	}
	a, err := v.send(c.live, "", do)
	if err != nil {
		return err
	}
	err = v.d.cfg.Batches.DropSignature(context.WithoutCancel(v.Context()), c.key(v.agency()), k.next())
	if a.Refusal != nil {
		return errors.Join(saidError(v.refusal(*a.Refusal)), err)
	}
	v.untilChanged(k.next())
	return err
}

// untilChanged waits until the pages show the change with a number.
func (v *visit) untilChanged(number int64) {
	v.until(func(ctx context.Context) bool {
		_, r, err := v.d.cfg.Batches.Agency(ctx, v.agency(), true)
		return err != nil || r.Changes >= number
	})
}

// drop is POST /agency/batches/people/drop: it ends a proposal, which needs no passkey.
func (v *visit) drop() {
	c := change{kind: disbursements.SignatureKind(v.Form.Get(fieldKind)), live: v.Form.Get(fieldMode) != modeTest}
	number, err := strconv.ParseInt(v.Form.Get(fieldNumber), 10, 64)
	if err != nil {
		v.Unknown()
		return
	}
	err = v.d.cfg.Batches.DropSignature(v.Context(), c.key(v.agency()), number)
	if err == nil {
		err = v.Note(operation.Entry{Action: "batch.drop_first", Subject: v.agency(), AgencyID: v.agency(), Detail: map[string]any{"kind": string(c.kind), "mode": disbursement.Mode(c.live), "number": number}})
	}
	if err != nil {
		v.Failed("ending a proposal about people or policy", err)
		return
	}
	v.See(rootPeople, fieldMode, disbursement.Mode(c.live), "done", "dropped")
}

// revoke is POST /agency/batches/people/revoke: it ends a person's part at once and for ever, and pays nothing.
func (v *visit) revoke() {
	live := v.Form.Get(fieldMode) != modeTest
	k, err := v.known(live)
	if err != nil {
		v.Failed("reading people and policy of batches", err)
		return
	}
	a, err := v.send(live, "", disbursement.Revoke{Person: v.Form.Get(fieldPerson)})
	switch {
	case errors.Is(err, commands.ErrUnavailable):
		v.writePeople(http.StatusServiceUnavailable, live, v.w.NoAnswer)
	case err != nil:
		v.Failed("revoking a person", err)
	case a.Refusal != nil:
		v.writePeople(http.StatusConflict, live, v.refusal(*a.Refusal))
	default:
		if !a.Replayed {
			v.untilChanged(k.next())
		}
		v.See(rootPeople, fieldMode, disbursement.Mode(live), "done", "revoked")
	}
}
