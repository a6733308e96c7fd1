package citizen

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/web"
	"quittance/internal/citizens"
	"quittance/internal/erp"
	"quittance/internal/form"
	audit "quittance/internal/operation"
	"quittance/money/language"
)

// The values of queryDone.
const (
	doneSignedOut = "signed-out"
	doneLinked    = "linked"
	doneRemoved   = "removed"
	doneRenewal   = "renewal"

	donePasskeyAdded   = "passkey-added"
	donePasskeyRemoved = "passkey-removed"
	doneEverywhere     = "signed-out-everywhere"

	doneReminders      = "reminders"
	doneRemindersEnded = "reminders-ended"
)

// maxLinkCode is how many characters the field of a link code takes.
const maxLinkCode = 64

// linkView is a reference that the account sees.
type linkView struct {
	ID, Agency, Subject, Since string
	// Others are the masked addresses of the other holders.
	Others []string
}

// showReferences answers with the account's references and the form to link one.
func (v visit) showReferences(status int, faults []form.Fault) {
	links, err := v.p.service.linksOf(v.R.Context(), v.who.ID)
	if err != nil {
		v.unavailable("reading links", err)
		return
	}
	out := v.view(v.w.RefsTitle, "references", "references")
	for _, l := range links {
		others, _, err := v.p.service.cfg.Citizens.CoHolders(v.R.Context(), v.who.ID, l.ID)
		if err != nil {
			v.unavailable("reading the holders of a reference", err)
			return
		}
		row := linkView{ID: l.ID, Agency: l.Agency.Name, Subject: l.SubjectRef, Since: language.Day(v.Lang, l.CreatedAt)}
		for _, h := range others {
			row.Others = append(row.Others, h.Addresses...)
		}
		out.Links = append(out.Links, row)
	}
	out.Agencies = v.p.service.portals()
	for i, a := range out.Agencies {
		out.Agencies[i].Selected = a.ID == v.Form.Get(fieldAgency)
	}
	out.Faults = faults
	v.offerPasskey(out)
	out.Typed[fieldSubject] = v.Form.Get(fieldSubject)
	if code := v.Form.Get(fieldLink); len(code) <= maxLinkCode {
		out.Typed[fieldLink] = code
	}
	v.Write(status, "references", out)
}

// addReference is POST /portal/references.
func (v visit) addReference() {
	q := LinkRequest{TenantID: v.Form.Get(fieldAgency), SubjectRef: v.Form.Get(fieldSubject), Code: v.Form.Get(fieldLink)}
	var faults []form.Fault
	known := false
	for _, a := range v.p.service.portals() {
		known = known || a.ID == q.TenantID
	}
	if !known {
		faults = append(faults, form.Fault{Field: fieldAgency, Message: v.w.AgencyMissing})
	}
	if q.SubjectRef == "" || !erp.IsReference(q.SubjectRef) || citizens.CheckSubjectRef(q.SubjectRef) != nil {
		faults = append(faults, form.Fault{Field: fieldSubject, Message: v.w.SubjectMissing})
	}
	if q.Code == "" || len(q.Code) > maxLinkCode {
		faults = append(faults, form.Fault{Field: fieldLink, Message: v.w.LinkMissing})
	}
	if len(faults) > 0 {
		v.showReferences(http.StatusUnprocessableEntity, faults)
		return
	}
	_, _, err := v.p.service.AddLink(v.R.Context(), v.who, q)
	switch code := RefusalOf(err).Code; {
	case err == nil:
		v.See("references", queryDone, doneLinked)
	case code == CodeLinkRefused:
		v.showReferences(http.StatusUnprocessableEntity, []form.Fault{{Field: fieldLink, Message: v.w.LinkRefused}})
	case RefusalOf(err).RetryAfter > 0:
		v.showReferences(http.StatusTooManyRequests, []form.Fault{{Message: v.w.LinkLimited}})
	default:
		v.unavailable("linking a reference", err)
	}
}

// removeReference is POST /portal/references/{id}/remove. A second click finds nothing to do.
func (v visit) removeReference() {
	err := v.p.service.RemoveLink(v.R.Context(), v.who, chi.URLParam(v.R, "id"))
	if err != nil && RefusalOf(err).Code != CodeLinkNotFound {
		v.unavailable("removing a reference", err)
		return
	}
	v.See("references", queryDone, doneRemoved)
}

// askRenewal is POST /portal/references/{id}/renew: the agency is asked to end all links and
// the link code of the reference.
func (v visit) askRenewal() {
	actor := audit.Actor{Kind: audit.ActorPerson, Name: v.who.ID, Origin: web.Client(v.R)}
	ok, err := v.p.service.cfg.Citizens.AskRenewal(v.R.Context(), actor, v.who.ID, chi.URLParam(v.R, "id"))
	switch {
	case err != nil:
		v.unavailable("asking for a new link code", err)
	case !ok:
		v.See("references")
	default:
		v.See("references", queryDone, doneRenewal)
	}
}
