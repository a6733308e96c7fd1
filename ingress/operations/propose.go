package operations

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"quittance/casework"
	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/internal/operation"
)

// proposing returns the form with which a person's passkey signs a proposal. It says which proposal of the case it is, so
// that a repeat changes nothing and another person's proposal in between is seen.
func (v *visit) proposing(d *cases.Detail) *staff.Press {
	w, path := v.w.Case, v.root()+"cases/"+d.ID+"/propose"
	p := v.NewPress(path+"/begin", path, w.Send)
	p.ID, p.NoScript = "propose", w.ProposeNoScript
	p.Hidden = map[string]string{fieldNumber: fmt.Sprint(len(d.Proposals) + 1)}
	resolutions := []staff.Option{{Label: w.Choose}}
	for _, r := range cases.Catalog().Allowed(d.Kind) {
		resolutions = append(resolutions, staff.Option{Value: string(r), Label: said(v.w.Resolutions, r)})
	}
	p.Inputs = []staff.Input{
		{Name: fieldResolution, Label: w.Propose, Hint: w.ResolutionHint, Options: resolutions, Required: true},
		{Name: fieldReference, Label: w.Evidence, Hint: w.ReferenceHint, Max: 2000},
		{Name: fieldReason, Label: w.Reason, Hint: w.ReasonHint, Max: 500, Required: true},
	}
	return p
}

// proposed returns what a form proposes, and the number of the proposal. ok is false if the form is answered: it was sent
// before, another proposal was made since the page was shown, or no resolution is chosen.
func (v *visit) proposed(form url.Values) (req cases.Request, number int, ok bool) {
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	req = cases.Request{CaseID: v.Param("case"), Resolution: casework.Resolution(text(fieldResolution)), Reference: text(fieldReference), Reason: text(fieldReason)}
	d, err := v.o.cfg.Cases.Show(v.Context(), v.viewer(), req.CaseID, v.Now)
	number = len(d.Proposals) + 1
	switch {
	case err != nil:
	case form.Get(fieldNumber) != fmt.Sprint(number):
		if v.isRepeat(&d, form.Get(fieldNumber), req) {
			v.answerProposed(req.CaseID)
			return req, number, false
		}
		err = operation.Refuse("case.changed", "", nil)
	case req.Resolution == "":
		err = operation.Refuse("case.resolution_missing", fieldResolution, nil)
	}
	if err != nil {
		v.answerRefusal(err, "reading a case")
	}
	return req, number, err == nil
}

// isRepeat reports whether the form was sent before: the person's own proposal of that number says the same.
func (v *visit) isRepeat(d *cases.Detail, number string, req cases.Request) bool {
	return slices.ContainsFunc(d.Proposals, func(p cases.Proposal) bool {
		return fmt.Sprint(p.Number) == number && p.ProposedBy == v.Acting.Person.ID && p.Resolution == req.Resolution && p.Reference == req.Reference && p.Reason == req.Reason
	})
}

// answerProposed leads the script of the page to the case.
func (v *visit) answerProposed(id string) {
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL(v.root()+"cases/"+id, "done", "proposed")})
}

// beginProposal is POST /ops/cases/{case}/propose/begin. It answers with the options with which the passkey signs what the
// form proposes, or with where to go if it was sent before.
func (v *visit) beginProposal() {
	req, number, ok := v.proposed(v.Form)
	if !ok {
		return
	}
	s, err := v.o.cfg.Cases.ProposalStatement(v.Context(), v.by(), req, number, v.Now)
	if err != nil {
		v.answerRefusal(err, "preparing a proposal")
		return
	}
	options, err := v.o.cfg.Approvals.Challenge(v.Context(), v.Acting, s)
	if err != nil {
		v.answerRefusal(err, "preparing a proposal")
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// propose is POST /ops/cases/{case}/propose, with the form and the answer of a passkey to it.
func (v *visit) propose() {
	form, answer, err := v.ReadPress()
	if err != nil {
		v.answerRefusal(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	req, _, ok := v.proposed(form)
	if !ok {
		return
	}
	by := v.by()
	by.Acting, err = v.o.cfg.Approvals.Answered(v.Context(), v.Acting, answer)
	if err == nil {
		_, err = v.o.cfg.Cases.Propose(v.Context(), by, req, v.Now)
	}
	if err != nil {
		v.answerRefusal(err, "proposing a resolution")
		return
	}
	v.answerProposed(req.CaseID)
}
