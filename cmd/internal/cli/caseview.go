package cli

import "quittance/internal/cases"

// caseJSON is a case as `cases list --json` prints it. Amount and currency are null for
// poison.
func caseJSON(c cases.Case) object {
	var amount any
	if c.Currency != "" {
		amount = c.Amount
	}
	return object{
		"id", c.ID, "kind", c.Kind, "state", c.State(), "session_id", orNone(c.SessionID), "order_id", orNone(c.OrderID),
		"amount", amount, "currency", orNone(c.Currency), "opened_at", c.OpenedAt,
	}
}

// detailJSON is a case as the other commands print it. The agency is a slug.
func detailJSON(d cases.Detail, agency string) object {
	return append(caseJSON(d.Case),
		"agency", orNone(agency), "application_id", orNone(d.ApplicationID), "mode", orNone(d.Mode), "collection_id", orNone(d.CollectionID),
		"operator_ref", orNone(d.OperatorRef), "reason", orNone(d.Reason), "opened_by", orNone(d.By), "clerks", d.Clerks, "evidence", d.Evidence,
		"resolution", orNone(string(d.Resolution)), "reference", orNone(d.Reference), "closed_by", orNone(d.ClosedBy), "closed_at", d.ClosedAt,
		"proposals", mapped(d.Proposals, func(p cases.Proposal) object {
			return object{
				"number", p.Number, "state", p.State, "resolution", p.Resolution, "reference", orNone(p.Reference), "reason", p.Reason,
				"proposed_by", p.Proposer, "proposed_at", p.ProposedAt, "decided_by", orNone(p.Decider), "decided_at", p.DecidedAt,
				"rejection", orNone(p.Decision), "refusal", orNone(p.Refusal), "finished_at", p.FinishedAt,
			}
		}))
}

// proposalSaid returns the state of a proposal for people.
func proposalSaid(p cases.Proposal) string {
	switch p.State {
	case cases.ProposalApproved, cases.ProposalCarriedOut:
		return string(p.State) + ", approved by " + p.Decider
	case cases.ProposalRefused:
		return "refused: " + p.Refusal
	case cases.ProposalRejected:
		return "rejected by " + p.Decider + ": " + p.Decision
	case cases.ProposalOpen, cases.ProposalLapsed, cases.ProposalVoid:
	}
	return string(p.State)
}

// sum returns the money of a case for people.
func sum(c cases.Case) string {
	if c.Currency == "" {
		return "-"
	}
	return decimal(c.Amount, c.Currency)
}
