package people

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"quittance/ingress/staff"
	"quittance/internal/identity"
)

// historyRows is the greatest number of rows of a person's history on the page.
const historyRows = 50

// personView is the record of a person.
type personView struct {
	view
	Facts             []staff.Fact
	Passkeys, Waiting staff.Grid
	NoPasskeys        string
	History           staff.Grid
	Actions           []staff.Fact // links
	Note              string
}

// person returns the person whom the address names, of those whom the person who asks sees. After false the answer is
// written.
func (v *visit) person() (all identity.People, e identity.StaffEntry, ok bool) {
	all, err := v.p.cfg.Book.Read(v.Context(), v.Now)
	if err != nil {
		v.Failed("reading people", err)
		return all, e, false
	}
	n := slices.IndexFunc(all.Staff, func(e identity.StaffEntry) bool { return e.ID == v.Param("person") && v.sees(e.AgencyID) })
	if n < 0 {
		v.Unknown()
		return all, e, false
	}
	return all, all.Staff[n], true
}

// showPerson is GET /people/{person}.
func (v *visit) showPerson() {
	all, e, ok := v.person()
	if !ok || !v.Record("staff.read", e.ID, e.AgencyID, nil) {
		return
	}
	steps, err := v.p.cfg.Book.History(v.Context(), e.ID, historyRows)
	if err != nil {
		v.Failed("reading the history of a person", err)
		return
	}
	w := v.w
	out := &personView{view: v.page(e.Name, "people/"+e.ID), Facts: v.personFacts(all, e), NoPasskeys: w.NoPasskeys}
	out.BackURL, out.BackText, out.Tagged = v.URL("people", fieldAgency, e.AgencyID), w.Title, true
	out.Command = "quittance staff passkeys " + e.ID
	out.Passkeys = v.passkeyGrid(w.Passkeys, e.InForcePasskeys())
	out.Waiting = staff.Grid{Caption: w.Waiting, Heads: []string{w.Since, w.What, w.State, w.AskedBy}}
	for _, i := range waiting(all, v.Now) {
		if i.staffID == e.ID {
			out.Waiting.Rows = append(out.Waiting.Rows, []staff.Cell{{Text: v.At(i.since), URL: v.URL(i.path)}, {Text: w.Kinds[i.kind]}, {Text: w.Stages[i.state]}, {Text: cmp.Or(all.Name(i.by), w.CommandLine)}})
		}
	}
	out.History = staff.Grid{Caption: w.History, Heads: []string{w.Since, w.What, w.AskedBy}}
	for _, s := range steps {
		out.History.Rows = append(out.History.Rows, []staff.Cell{{Text: v.At(s.At)}, {Text: cmp.Or(w.Steps[s.Action], s.Action)}, {Text: cmp.Or(all.Name(s.By), w.CommandLine)}})
	}
	if !v.decides(all, e.AgencyID) {
		out.Note = fmt.Sprintf(w.OthersDecide, v.group(e.AgencyID))
	} else {
		out.Note = v.note(all, e.AgencyID)
		for _, act := range v.acts(e) {
			out.Actions = append(out.Actions, staff.Fact{Value: w.Acts[act].Title, URL: v.URL("people/" + e.ID + "/" + act)})
		}
	}
	v.Write(http.StatusOK, "person", out)
}

// acts returns what the person may do with another one, by the words of the address.
func (v *visit) acts(e identity.StaffEntry) (out []string) {
	if e.Forged {
		return nil
	}
	own := e.ID == v.Acting.Person.ID
	switch e.State() {
	case identity.StaffStateActive:
		if out = append(out, actRoles); !own {
			out = append(out, actSuspend, actInvite, actRevoke)
		}
	case identity.StaffStateSuspended:
		if !own && e.SuspendedBy != v.Acting.Person.ID {
			out = append(out, actLift)
		}
		out = append(out, actRoles, actInvite, actRevoke)
	case identity.StaffStateProposed:
		if e.Invited {
			out = append(out, actInvite, actRevoke)
		}
	case identity.StaffStateWaiting, identity.StaffStateRevoked:
	}
	return out
}

// personFacts are what a page shows of a person.
func (v *visit) personFacts(all identity.People, e identity.StaffEntry) []staff.Fact {
	out := []staff.Fact{
		{Label: v.w.Name, Value: e.Name},
		{Label: v.w.Number, Value: e.Number},
		{Label: v.w.Group, Value: v.group(e.AgencyID)},
		{Label: v.w.State, Value: v.state(e)},
		{Label: v.w.Roles, Value: cmp.Or(v.roles(e.Roles), v.w.NoRoles)},
		{Label: v.w.Address, Value: e.Contact.Email},
	}
	if !e.SuspendedAt.IsZero() {
		out = append(out, staff.Fact{Label: v.w.SuspendedAt, Value: v.At(e.SuspendedAt)}, staff.Fact{Label: v.w.SuspendedBy, Value: cmp.Or(all.Name(e.SuspendedBy), v.w.CommandLine)})
	}
	return out
}

// passkeyGrid lists passkeys.
func (v *visit) passkeyGrid(caption string, list []identity.StaffPasskey) staff.Grid {
	g := staff.Grid{Caption: caption, Heads: []string{v.w.Name, v.w.MadeAt, v.w.ApprovesFrom, v.w.LastUse}}
	for _, k := range list {
		g.Rows = append(g.Rows, []staff.Cell{{Text: k.Name}, {Text: v.At(k.CreatedAt)}, {Text: v.At(k.ApprovesFrom)}, {Text: v.At(k.LastUsedAt)}})
	}
	return g
}

// What one may do with a person, as addresses name it.
const (
	actRoles   = "roles"
	actRevoke  = "revoke"
	actSuspend = "suspend"
	actLift    = "lift"
	actInvite  = "invite"
)

// pressView is a page with a form that a passkey signs.
type pressView struct {
	view
	Intro string
	Facts []staff.Fact
	Grid  staff.Grid
	Press *staff.Press
	End   *endForm
	Note  string
}

// endForm withdraws or rejects.
type endForm struct{ URL, ID, Kind, Subject, Title, Label string }

// rolesOf returns the roles that people of a group may have.
func rolesOf(agencyID string) []identity.Role {
	return slices.DeleteFunc(identity.Roles(), func(r identity.Role) bool { return r.OfService() != (agencyID == "") })
}

// boxes are roles to tick.
func (v *visit) boxes(list []identity.Role) (out []staff.Option) {
	for _, r := range list {
		out = append(out, staff.Option{Value: string(r), Label: v.RoleName(r)})
	}
	return out
}

// showInvite is GET /people/invite.
func (v *visit) showInvite() {
	of, ok := v.chosen()
	if !ok {
		v.Unknown()
		return
	}
	all, err := v.p.cfg.Book.Read(v.Context(), v.Now)
	if err != nil {
		v.Failed("reading people", err)
		return
	}
	w := v.w
	out := &pressView{view: v.page(w.InviteTitle, "people/invite", fieldAgency, of), Intro: w.InviteText, Note: v.note(all, of)}
	out.BackURL, out.BackText = v.URL("people", fieldAgency, of), w.Title
	out.Facts = []staff.Fact{{Label: w.Group, Value: v.group(of)}}
	if !v.decides(all, of) {
		out.Note = fmt.Sprintf(w.OthersDecide, v.group(of))
	} else {
		out.Press = v.press(identity.PeopleInvite, "", "", w.InviteSend)
		out.Press.Hidden[fieldAgency] = of
		out.Press.Inputs = []staff.Input{
			{Name: fieldName, Label: w.Name, Hint: w.NameHint, Max: 100, Required: true},
			{Name: fieldNumber, Label: w.Number, Hint: w.NumberHint, Max: 50},
		}
		out.Press.Boxes = []staff.Boxes{{Name: fieldAdd, Legend: w.Roles, Options: v.boxes(rolesOf(of))}}
	}
	command := "quittance staff invite --name NAME --role ROLE"
	if of != "" {
		command = "quittance staff invite --name NAME --agency " + v.slug(of) + " --role ROLE"
	}
	out.Command = refusing(all, of, command)
	v.Write(http.StatusOK, "press", out)
}

// showAct is GET /people/{person}/{act}.
func (v *visit) showAct() {
	all, e, ok := v.person()
	if !ok {
		return
	}
	act := v.Param("act")
	if !slices.Contains(v.acts(e), act) || !v.decides(all, e.AgencyID) {
		v.Unknown()
		return
	}
	w := v.w.Acts[act]
	out := &pressView{view: v.page(w.Title, "people/"+e.ID+"/"+act), Intro: w.Text, Facts: v.personFacts(all, e), Note: v.note(all, e.AgencyID)}
	out.BackURL, out.BackText = v.URL("people/"+e.ID), e.Name
	reason := staff.Input{Name: fieldReason, Label: v.w.Reason, Hint: v.w.ReasonHint, Max: 500, Required: true}
	switch act {
	case actRoles:
		out.Press = v.press(identity.PeoplePropose, e.ID, e.Shown(), w.Send)
		out.Press.Hidden[fieldChange] = string(identity.StaffChangeRoles)
		gets := slices.DeleteFunc(rolesOf(e.AgencyID), func(r identity.Role) bool { return slices.Contains(e.Roles, r) })
		out.Press.Boxes = []staff.Boxes{{Name: fieldAdd, Legend: v.w.Add, Options: v.boxes(gets)}, {Name: fieldRemove, Legend: v.w.Remove, Options: v.boxes(e.Roles)}}
		out.Press.Inputs = []staff.Input{reason}
		out.Command = refusing(all, e.AgencyID, "quittance staff roles "+e.ID+" --add ROLE --remove ROLE")
	case actRevoke:
		out.Press = v.press(identity.PeoplePropose, e.ID, e.Shown(), w.Send)
		out.Press.Hidden[fieldChange] = string(identity.StaffChangeRevoke)
		out.Press.Inputs, out.Command = []staff.Input{reason}, "quittance staff revoke "+e.ID
	case actSuspend:
		out.Press = v.press(identity.PeopleSuspend, e.ID, e.Shown(), w.Send)
		out.Press.Inputs, out.Command = []staff.Input{reason}, "quittance staff suspend "+e.ID+" --reason TEXT"
	case actLift:
		out.Press = v.press(identity.PeopleLift, e.ID, e.Shown(), w.Send)
		out.Press.Inputs, out.Command = []staff.Input{reason}, refusing(all, e.AgencyID, "quittance staff lift "+e.ID+" --reason TEXT")
	case actInvite:
		out.Press = v.press(identity.PeopleInvite, e.ID, e.Shown(), w.Send)
		command := "quittance staff invite " + e.ID
		if len(e.InForcePasskeys()) >= identity.MinPasskeys {
			out.Press.Hidden[fieldLost] = "1"
			command += " --lost"
		}
		out.Command = refusing(all, e.AgencyID, command)
	}
	v.Write(http.StatusOK, "press", out)
}
