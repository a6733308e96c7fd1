package operations

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// fieldShown is the digest of what the page has shown of a proposal.
const fieldShown = "shown"

// approvalView is the form with which a person's passkey approves a proposal.
type approvalView struct {
	Number                    int
	Shown                     string
	BeginURL, FinishURL, Next string
	Host                      string
}

// approval returns the form for the proposal that waits, if the person may approve it; nil otherwise. What the noun
// refuses when somebody presses is said then.
func (v *visit) approval(d *cases.Detail, p *cases.Proposal) (*approvalView, error) {
	if p == nil || p.State != cases.ProposalOpen || len(p.Digest) == 0 {
		return nil, nil
	}
	if p.ProposedBy == v.Acting.Person.ID {
		alone, err := v.o.cfg.Cases.MayAlone(v.Context(), d.Case, p.Resolution)
		if err != nil || !alone || v.Acting.May(identity.MayPropose, d.AgencyID) != nil {
			return nil, err
		}
	} else if v.Acting.May(identity.MayApprove, d.AgencyID) != nil {
		return nil, nil
	}
	path := v.root() + "cases/" + d.ID
	return &approvalView{
		Number: p.Number, Shown: d.Shown(p.Number), Host: v.Host(), Next: v.URL(path, "done", "approved"),
		BeginURL: v.URL(path + "/approve/begin"), FinishURL: v.URL(path + "/approve/" + strconv.Itoa(p.Number)),
	}, nil
}

// beginApproval is POST /ops/cases/{case}/approve/begin. It answers with the options with which the passkey signs what
// the page has shown.
func (v *visit) beginApproval() {
	number, err := strconv.Atoi(v.Form.Get(fieldNumber))
	if err != nil || number < 1 {
		v.answerRefusal(operation.Refuse("case.proposal_unknown", "proposal", nil), "")
		return
	}
	s, err := v.o.cfg.Cases.Statement(v.Context(), v.by(), v.Param("case"), number, v.Form.Get(fieldShown), v.Now)
	if err != nil {
		v.answerRefusal(err, "preparing an approval")
		return
	}
	options, err := v.o.cfg.Approvals.Challenge(v.Context(), v.Acting, s)
	if err != nil {
		v.answerRefusal(err, "preparing an approval")
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// approve is POST /ops/cases/{case}/approve/{number}, with the answer of a passkey.
func (v *visit) approve() {
	id := v.Param("case")
	number, err := strconv.Atoi(v.Param("number"))
	var answer []byte
	if err == nil {
		answer, err = v.ReadAnswer()
	}
	if err != nil {
		v.answerRefusal(operation.Refuse("decision.not_signed", "", nil), "")
		return
	}
	by := v.by()
	by.Acting, err = v.o.cfg.Approvals.Answered(v.Context(), v.Acting, answer)
	if err == nil {
		_, err = v.o.cfg.Cases.Approve(v.Context(), by, id, number, v.Now)
	}
	if err != nil {
		v.answerRefusal(err, "approving a proposal")
		return
	}
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL(v.root()+"cases/"+id, "done", "approved")})
}

// answerRefusal tells the script of the page why something was refused, or that the service cannot answer.
func (v *visit) answerRefusal(err error, doing string) {
	var refusal *operation.Error
	if !errors.As(err, &refusal) {
		v.AnswerUnavailable(doing, err)
		return
	}
	v.AnswerRefusal(staff.StatusOf(err), err)
}

// rejects reports whether the person may end a proposal: the own one, or another person's with the permission to
// decide.
func (v *visit) rejects(d *cases.Detail, p *cases.Proposal) error {
	if p.ProposedBy == v.Acting.Person.ID {
		return v.Acting.May(identity.MayPropose, d.AgencyID)
	}
	return v.Acting.May(identity.MayApprove, d.AgencyID)
}

// sayDone says what the person has just done to a case.
func (w *caseWords) sayDone(done string) string {
	switch strings.TrimSpace(done) {
	case "proposed":
		return w.Proposed
	case "rejected":
		return w.Rejected
	case "approved":
		return w.Approved
	}
	return ""
}
