package people

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/casework"
	"quittance/ingress/staff"
	"quittance/internal/identity"
)

// listView is the people of a group.
type listView struct {
	view
	Group, Note         string
	Waiting, People     staff.Grid
	Agencies            []staff.Choice // for the service's people
	InviteURL, FirstURL string
}

// fieldAgency names an agency in addresses and forms; empty for the service.
const fieldAgency = "agency"

// chosen returns the group that the address names, of those that the person sees.
func (v *visit) chosen() (agencyID string, ok bool) {
	if !v.Acting.Service() {
		return v.Acting.Person.AgencyID, true
	}
	id := v.Query(fieldAgency)
	_, known := v.p.cfg.Agencies.Agency(id)
	return id, id == "" || known
}

// list is GET /people.
func (v *visit) list() {
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
	out := &listView{view: v.page(v.w.Title, "people", fieldAgency, of), Group: v.group(of), Note: v.note(all, of)}
	out.Tagged, out.Command = true, "quittance staff list"
	if v.Acting.Service() {
		out.Agencies = append(out.Agencies, staff.Choice{Label: v.w.Service, Chosen: of == ""})
		for _, a := range v.p.cfg.Agencies.Agencies() {
			out.Agencies = append(out.Agencies, staff.Choice{Value: a.ID, Label: a.Name, Chosen: a.ID == of})
		}
	}
	if v.decides(all, of) {
		out.InviteURL = v.URL("people/invite", fieldAgency, of)
	}
	out.Waiting = staff.Grid{Caption: v.w.Waiting, Heads: []string{v.w.Since, v.w.What, v.w.Name, v.w.State}}
	for _, w := range waiting(all, v.Now) {
		if w.agencyID == of {
			out.Waiting.Rows = append(out.Waiting.Rows, []staff.Cell{{Text: v.At(w.since), URL: v.URL(w.path)}, {Text: v.w.Kinds[w.kind]}, {Text: w.name}, {Text: v.w.Stages[w.state]}})
		}
	}
	out.People = staff.Grid{Caption: fmt.Sprintf(v.w.PeopleOf, v.group(of)), Heads: []string{v.w.Name, v.w.Number, v.w.State, v.w.Roles, v.w.Passkeys, v.w.LastUse}}
	for _, e := range all.Staff {
		if e.AgencyID != of {
			continue
		}
		var last time.Time
		keys := e.InForcePasskeys()
		for _, k := range keys {
			if k.LastUsedAt.After(last) {
				last = k.LastUsedAt
			}
		}
		out.People.Rows = append(out.People.Rows, []staff.Cell{
			{Text: e.Name, URL: v.URL("people/" + e.ID)}, {Text: cmp.Or(e.Number, "–")}, {Text: v.state(e)}, {Text: cmp.Or(v.roles(e.Roles), v.w.NoRoles)}, {Text: fmt.Sprint(len(keys))}, {Text: v.At(last)},
		})
	}
	v.Write(http.StatusOK, "people", out)
}

// state returns the state of a person as people read it.
func (v *visit) state(e identity.StaffEntry) string {
	if e.Forged {
		return v.w.Forged
	}
	return v.w.States[string(e.State())]
}

// roles returns the names of roles.
func (v *visit) roles(list []identity.Role) string {
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = v.RoleName(r)
	}
	return strings.Join(names, ", ")
}

// note says who decides about the people of a group, and what the command line says.
func (v *visit) note(all identity.People, agencyID string) string {
	switch {
	case all.Managers(agencyID) >= identity.MinManagers:
		return v.w.PagesDecide
	case agencyID != "":
		return v.w.CommandDecidesAgency
	}
	return v.w.CommandDecides
}

// item is something about people that waits for a person.
type item struct {
	kind, state string // of the words
	agencyID    string
	name        string // of whom it is about
	by          string // id of whoever began it, who does not end it
	staffID     string
	since       time.Time
	path        string
}

// waiting returns what waits: invitations that are open, and proposals.
func waiting(all identity.People, now time.Time) (out []item) {
	for _, i := range all.Invitations {
		if i.Open(now) {
			out = append(out, item{"invitation", string(i.State(now)), i.Of.AgencyID, i.Of.Name, i.InvitedBy, i.StaffID, i.InvitedAt, "people/invitations/" + i.ID})
		}
	}
	for _, c := range all.Changes {
		if c.State == casework.DecisionProposed && !c.Forged {
			out = append(out, item{string(c.Kind), string(c.State), c.Of.AgencyID, c.Of.Name, c.ProposedBy, c.StaffID, c.ProposedAt, "people/changes/" + c.ID})
		}
	}
	slices.SortStableFunc(out, func(a, b item) int { return b.since.Compare(a.since) })
	return out
}

// Waiting returns what waits about people for a person who is signed in, for the first page: what the person may confirm or
// approve, and what the person has begun.
func (p *People) Waiting(ctx context.Context, v *staff.Visit) (mine, own staff.Grid, err error) {
	at := &visit{v, p, texts.In(v.Lang)}
	if v.Acting.May(identity.MayManagePeople, "") != nil {
		return mine, own, nil
	}
	all, err := p.cfg.Book.Read(ctx, v.Now)
	if err != nil {
		return mine, own, err
	}
	heads := []string{at.w.Since, at.w.What, at.w.Name, at.w.Group}
	mine, own = staff.Grid{Caption: at.w.WaitsForYou, Heads: heads}, staff.Grid{Caption: at.w.YouAsked, Heads: heads}
	for _, w := range waiting(all, v.Now) {
		row := []staff.Cell{{Text: v.At(w.since), URL: v.URL(w.path)}, {Text: at.w.Kinds[w.kind], More: at.w.Stages[w.state]}, {Text: w.name}, {Text: at.group(w.agencyID)}}
		switch {
		case w.by == v.Acting.Person.ID:
			own.Rows = append(own.Rows, row)
		case w.staffID != v.Acting.Person.ID && at.decides(all, w.agencyID) && w.state != string(identity.InvitationSent) && w.state != string(identity.InvitationAccepted):
			mine.Rows = append(mine.Rows, row)
		}
	}
	return mine, own, nil
}
