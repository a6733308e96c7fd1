package display

import (
	"quittance/cmd/internal/cli/render"
	"quittance/internal/cases"
)

// CaseJSON is a case as `cases list --json` prints it. Amount and currency are null for
// poison.
func CaseJSON(c cases.Case) render.Object {
	var amount any
	if c.Currency != "" && !c.AmountUnknown() {
		amount = c.Amount
	}
	var owed any
	amountOwed, currencyOwed, ok := c.Owed()
	if ok {
		owed = amountOwed
	}
	return render.Object{
		"id", c.ID, "kind", c.Kind, "state", c.State(), "session_id", render.OrNone(c.SessionID), "order_id", render.OrNone(c.OrderID),
		"amount", amount, "currency", render.OrNone(c.Currency), "opened_at", c.OpenedAt,
		"expected_amount", owed, "expected_currency", render.OrNone(currencyOwed), "mode", render.OrNone(c.Mode),
	}
}

// CaseOwed returns what the payer of a case owed, for people; empty where it is not known.
func CaseOwed(c cases.Case) string {
	amount, currency, ok := c.Owed()
	if !ok {
		return ""
	}
	return render.Decimal(amount, currency)
}

// DetailJSON is a case as the other commands print it. The agency is a slug.
func DetailJSON(d cases.Detail, agency string) render.Object {
	return append(CaseJSON(d.Case),
		"agency", render.OrNone(agency), "application_id", render.OrNone(d.ApplicationID), "collection_id", render.OrNone(d.CollectionID),
		"operator_ref", render.OrNone(d.OperatorRef), "reason", render.OrNone(d.Reason), "opened_by", render.OrNone(d.By), "clerks", d.Clerks, "evidence", d.Evidence,
		"resolution", render.OrNone(string(d.Resolution)), "reference", render.OrNone(d.Reference), "closed_by", render.OrNone(d.ClosedBy), "approved_by", render.OrNone(d.ApprovedBy()), "closed_at", d.ClosedAt,
		"refusal", render.OrNone(d.EndedReason),
		"proposals", render.Mapped(d.Proposals, func(p cases.Proposal) render.Object {
			return render.Object{
				"number", p.Number, "state", p.State, "resolution", p.Resolution, "reference", render.OrNone(p.Reference), "reason", p.Reason,
				"proposed_by", p.Proposer, "proposed_at", p.ProposedAt, "decided_by", render.OrNone(p.Decider), "decided_at", p.DecidedAt,
				"rejection", render.OrNone(p.Decision), "refusal", render.OrNone(p.Refusal), "finished_at", p.FinishedAt,
			}
		}))
}

// ProposalSaid returns the state of a proposal for people.
func ProposalSaid(p cases.Proposal) string {
	switch p.State {
	case cases.ProposalApproved:
		return "approved by " + p.Decider + ", outcome not known yet"
	case cases.ProposalCarriedOut:
		return string(p.State) + ", approved by " + p.Decider
	case cases.ProposalRefused:
		return "refused: " + p.Refusal
	case cases.ProposalRejected:
		return "rejected by " + p.Decider + ": " + p.Decision
	case cases.ProposalOpen, cases.ProposalLapsed, cases.ProposalVoid:
	}
	return string(p.State)
}

// CaseSum returns the money of a case for people.
func CaseSum(c cases.Case) string {
	switch {
	case c.AmountUnknown():
		return "unknown"
	case c.Currency == "":
		return "-"
	}
	return render.Decimal(c.Amount, c.Currency)
}
