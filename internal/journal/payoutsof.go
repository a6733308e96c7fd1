package journal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"quittance/disbursement"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// PayoutsOf returns the money of lines of batches that an event tells of, without its position; none for events that tell
// of none. Each attempt to pay a line is an entry of its own, since it has a reference of its own. An event that lacks what
// a row needs is an error that wraps ErrInvalidEntry.
func PayoutsOf(r *record.DisbursementEvent) ([]Expected, error) {
	var of func(p payout) []Expected
	switch disbursement.EventType(r.Type) {
	case disbursement.EventLinePaid:
		of = func(p payout) []Expected { return p.decided(p.paid(p.line.PaidBy, p.at)) }
	case disbursement.EventLineRefused:
		of = func(p payout) []Expected {
			if p.line.Unproven {
				return p.decided(p.unproven())
			}
			return p.decided(p.refused(p.line.Attempt))
		}
	case disbursement.EventLineProven:
		of = func(p payout) []Expected {
			return []Expected{p.unproven().Withdraw(withdrawnDecided), p.proven()}
		}
	case disbursement.EventLineUnproven:
		of = func(p payout) []Expected { return append(p.endedProofs(withdrawnStatement), p.unproven()) }
	case disbursement.EventLineUnsent:
		of = func(p payout) []Expected { return p.decided(p.refused(p.line.Attempt)) }
	case disbursement.EventLinesCancel:
		if r.Detail[disbursement.DetailWord] == "" {
			return nil, nil // lines that were not sent
		}
		of = func(p payout) []Expected { return p.decided(p.refused(p.line.Attempt)) }
	case disbursement.EventLineReturned:
		of = func(p payout) []Expected { return []Expected{p.cameBack(p.line.PaidBy, p.at)} }
	case disbursement.EventReturnWithdrawn:
		of = func(p payout) []Expected {
			return []Expected{p.cameBack(p.line.PaidBy, p.returnedAt).Withdraw(withdrawnStatement)}
		}
	case disbursement.EventLinePart:
		amount, err := strconv.ParseInt(r.Detail[disbursement.DetailReported], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %s has no amount", ErrInvalidEntry, r.Type, r.ID)
		}
		of = func(p payout) []Expected {
			return []Expected{p.part(amount, r.Detail[disbursement.DetailCurrency])}
		}
	case disbursement.EventCaseOpened:
		switch {
		case r.Detail[disbursement.DetailCase] == string(disbursement.CaseUndecided):
			of = func(p payout) []Expected { return []Expected{p.undecided()} }
		case r.Detail[disbursement.DetailProofs] != "":
			of = func(p payout) []Expected { return p.endedProofs(withdrawnStatement) }
		default:
			return nil, nil
		}
	case disbursement.EventLineSettled:
		of = func(p payout) []Expected { return append(p.settled(), p.endedProofs(withdrawnDecided)...) }
	default:
		return nil, nil
	}
	if r.Batch == nil {
		return nil, fmt.Errorf("%w: %s %s has no batch", ErrInvalidEntry, r.Type, r.ID)
	}
	b := batches.ToBatch(r.Batch)
	ended, returnedAt, err := endedBy(r)
	if err != nil {
		return nil, err
	}
	var out []Expected
	for i := range r.Lines {
		p := payout{batch: b, line: batches.ToLine(&r.Lines[i]), at: r.At, event: r.ID, detail: r.Detail, ended: ended, returnedAt: returnedAt}
		if p.line.Account < 0 || p.line.Account >= len(b.Accounts) {
			return nil, fmt.Errorf("%w: %s %s names an account that its batch does not have", ErrInvalidEntry, r.Type, r.ID)
		}
		out = append(out, of(p)...)
	}
	return out, nil
}

// endedBy returns the proofs by statements that an event ends, and when the money had come back of which it says that it did not.
func endedBy(r *record.DisbursementEvent) (proofs []disbursement.Proof, returnedAt time.Time, err error) {
	if all := r.Detail[disbursement.DetailProofs]; all != "" {
		if proofs, err = disbursement.ParseProofs(all); err != nil {
			return nil, returnedAt, fmt.Errorf("%w: %s %s: %w", ErrInvalidEntry, r.Type, r.ID, err)
		}
	}
	if at := r.Detail[disbursement.DetailReturnedAt]; at != "" || disbursement.EventType(r.Type) == disbursement.EventReturnWithdrawn {
		if returnedAt, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return nil, returnedAt, fmt.Errorf("%w: %s %s: %w", ErrInvalidEntry, r.Type, r.ID, err)
		}
	}
	return proofs, returnedAt, nil
}

// payout is a line after an event.
type payout struct {
	batch  disbursement.Batch
	line   disbursement.Line
	at     time.Time
	event  string
	detail map[string]string
	// ended are the proofs that the event ends, and returnedAt is when the money had come back that did not; zero for none.
	ended      []disbursement.Proof
	returnedAt time.Time
}

// entry returns the entry of an attempt. of tells it apart from others of its kind and attempt. It does not name the line by its
// line_ref, which may be a person's number at the agency: analysts see amounts.
func (p payout) entry(kind ExpectedKind, state ExpectedState, attempt int, at time.Time, amount int64, of ...string) Expected {
	account := p.batch.Accounts[p.line.Account]
	name := PayoutName(p.line.LineKey, attempt)
	return Expected{
		ID: ExpectedID(kind, append([]string{name}, of...)...), Kind: kind, State: state, ApprovedAt: at, LocalDate: localDate(at), OccurredAt: p.at,
		TenantID: p.batch.TenantID, Livemode: p.batch.Live, OfferID: account.Code, Account: account.Fingerprint,
		SessionID: p.batch.ID, CollectionID: name, PaymentRef: disbursement.NewAttemptID(p.line.Batch, p.line.Position, attempt).PayoutRef(),
		NoticeRefs: []string{}, Currency: p.batch.Currency, Gross: amount, DueRefs: []string{}, TransactionIDs: []string{}, Amounts: []int64{},
	}
}

// paid returns the entry of an attempt that paid at a time. People may take it back, and decide once more that it paid: then it
// is another entry, because one that was withdrawn stays so.
func (p payout) paid(attempt int, at time.Time) Expected {
	out := p.entry(ExpectedPaidOut, ExpectedPaid, attempt, at, -p.line.Amount, stamp(at))
	if attempt == p.line.Attempt {
		out.OperatorRef = p.line.OperatorRef
	}
	return out
}

func (p payout) refused(attempt int) Expected {
	return p.entry(ExpectedRefused, ExpectedRefused, attempt, p.at, -p.line.Amount, stamp(p.at))
}

func stamp(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

// proven returns the entry of the last attempt, of which statements prove that it paid nobody. Events of before the line had its proofs
// have that of a refusal.
func (p payout) proven() Expected {
	for _, proof := range p.line.Proofs {
		if proof.Attempt == p.line.Attempt {
			return p.byStatements(proof)
		}
	}
	return p.refused(p.line.Attempt)
}

func (p payout) byStatements(proof disbursement.Proof) Expected {
	return p.entry(ExpectedRefused, ExpectedProven, proof.Attempt, proof.At, -p.line.Amount, stamp(proof.At))
}

// endedProofs returns the rows that withdraw, for a reason, the proofs that the event ends. Where the attempt is neither unproven now nor has paid, it is
// still one that its operator has refused.
func (p payout) endedProofs(reason string) (out []Expected) {
	for _, proof := range p.ended {
		out = append(out, p.byStatements(proof).Withdraw(reason))
		if proof.Attempt != p.line.PaidBy && !(p.line.Unproven && proof.Attempt == p.line.Attempt) {
			out = append(out, p.refused(proof.Attempt))
		}
	}
	return out
}

// cameBack returns the entry of the whole amount of an attempt that came back at a time. A statement that says so may be withdrawn: then
// it comes back once more as another entry. Lines of which it is not noted when they were paid are of before that was possible.
func (p payout) cameBack(attempt int, at time.Time) Expected {
	if p.line.PaidAt.IsZero() && p.returnedAt.IsZero() {
		return p.entry(ExpectedReturned, ExpectedReversed, attempt, at, p.line.Amount)
	}
	return p.entry(ExpectedReturned, ExpectedReversed, attempt, at, p.line.Amount, stamp(at))
}

// part returns the entry of a part that came back. Parts may come back several times.
func (p payout) part(amount int64, currency string) Expected {
	out := p.entry(ExpectedReturned, ExpectedReversed, p.line.PaidBy, p.at, amount, p.event)
	out.Currency, out.Reference = currency, p.detail[disbursement.DetailReference]
	return out
}

// undecided returns the entry of the last attempt, about which nobody knows whether it paid.
func (p payout) undecided() Expected {
	return p.entry(ExpectedUndecided, ExpectedSent, p.line.Attempt, p.line.SentAt, -p.line.Amount)
}

// unproven returns the entry of the last attempt, which its operator refused without proving that no money moved. It is of the day
// on which the attempt was sent.
func (p payout) unproven() Expected {
	of := []string{ExpectedUnproven}
	if at := p.line.UnprovenAt; !at.IsZero() { // once more
		of = append(of, stamp(at))
	}
	return p.entry(ExpectedUndecided, ExpectedUnproven, p.line.Attempt, p.line.SentAt, -p.line.Amount, of...)
}

// decided returns an entry, and before it the row that withdraws that of the undecided attempt. An attempt that was
// decided before the time after which a case opens has none.
func (p payout) decided(with ...Expected) []Expected {
	if p.at.Before(p.line.SentAt.Add(disbursement.UndecidedAfter)) {
		return with
	}
	return append([]Expected{p.undecided().Withdraw(withdrawnDecided)}, with...)
}

// settled returns the rows of a line about which two people have decided. What they decide may contradict what was known.
func (p payout) settled() (out []Expected) {
	was := disbursement.LineStatus(p.detail[disbursement.DetailWas])
	before, _ := strconv.Atoi(p.detail[disbursement.DetailPaidBy]) // absent: no attempt had paid
	now := p.line.PaidBy
	unproven := p.detail[disbursement.DetailUnproven] != ""
	switch {
	case was == disbursement.LineSent && !p.line.Out:
		out = p.decided()
	case unproven:
		out = append(out, p.unproven().Withdraw(withdrawnDecided))
	}
	if before == now {
		if now == 0 && (was == disbursement.LineSent || unproven) {
			out = append(out, p.refused(p.line.Attempt))
		}
		return out
	}
	if before != 0 {
		// Of a line that came back it may not be known when it was paid: the payment and its return both stay, and add up to nothing.
		if at, err := time.Parse(time.RFC3339Nano, p.detail[disbursement.DetailPaidAt]); err == nil {
			out = append(out, p.paid(before, at).Withdraw(withdrawnDecided), p.refused(before))
			if !p.returnedAt.IsZero() && now == 0 {
				out = append(out, p.cameBack(before, p.returnedAt).Withdraw(withdrawnDecided))
			}
		}
	}
	if now != 0 {
		out = append(out, p.paid(now, p.at))
	}
	return out
}

// PayoutName returns the name of an attempt to pay a line in the column collection_id.
func PayoutName(line disbursement.LineKey, attempt int) string {
	return fmt.Sprintf("%s/%d/%d", line.Batch, line.Position, attempt)
}

// errPayoutName is the error of ParsePayoutName.
var errPayoutName = errors.New("this names no attempt to pay a line")

// ParsePayoutName returns the line and the attempt that a name has.
func ParsePayoutName(name string) (line disbursement.LineKey, attempt int, err error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return line, 0, errPayoutName
	}
	line.Batch = parts[0]
	if line.Position, err = strconv.Atoi(parts[1]); err == nil {
		attempt, err = strconv.Atoi(parts[2])
	}
	if err != nil {
		return line, 0, errors.Join(errPayoutName, err)
	}
	return line, attempt, nil
}
