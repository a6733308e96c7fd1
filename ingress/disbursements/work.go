package disbursements

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/ingress/staff"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
)

// Waiting returns what waits about batches for a person who is signed in, for the first page: steps that the person may sign,
// lines about which two people decide, and first signatures; and the signatures of the person that wait for another one.
func (d *Disbursements) Waiting(ctx context.Context, frame *staff.Visit) (mine, own staff.Grid, err error) {
	v := &visit{frame, d, texts.In(frame.Lang)}
	if v.agency() == "" || !v.may(identity.MayManageBatches) {
		return mine, own, nil
	}
	w, in := v.w, disbursements.Scope{TenantID: v.agency()}
	heads := []string{w.Since, w.What, w.Ref, w.Mode}
	mine, own = staff.Grid{Caption: w.WaitsForYou, Heads: heads}, staff.Grid{Caption: w.YouSigned, Heads: heads}
	_, roster, err := d.cfg.Batches.Agency(ctx, in.TenantID, true)
	if err != nil {
		return mine, own, err
	}
	list, err := d.cfg.Batches.Waiting(ctx, in)
	if err != nil {
		return mine, own, err
	}
	for _, b := range list {
		path, mode := rootBatches+"/"+b.ID, v.mode(b.Live)
		for _, s := range v.offered(b.Batch, roster) {
			if s.verdict == digest.Reject { // goes with the approval
				continue
			}
			mine.Rows = append(mine.Rows, []staff.Cell{{Text: v.At(since(s, b.Batch)), URL: v.URL(path)}, {Text: w.Sign[string(s.verdict)].Title}, {Text: b.BatchRef}, {Text: mode}})
		}
		if b.Cases > 0 {
			mine.Rows = append(mine.Rows, []staff.Cell{{Text: v.At(b.CaseSince), URL: v.URL(path, onlyCases, "1")}, {Text: fmt.Sprintf(w.CasesOf, b.Cases)}, {Text: b.BatchRef}, {Text: mode}})
		}
	}
	paused, err := d.cfg.Batches.PausedAccounts(ctx, in)
	if err != nil {
		return mine, own, err
	}
	for _, a := range paused {
		if a.Closed {
			mine.Rows = append(mine.Rows, []staff.Cell{{Text: v.At(a.Since), URL: v.URL(rootBatches + "/" + a.Batch)}, {Text: fmt.Sprintf(w.ClosedAccount, a.Code)}, {Text: "–"}, {Text: v.mode(a.Live)}})
		}
	}
	signatures, err := d.cfg.Batches.FirstSignatures(ctx, in, v.Now)
	if err != nil {
		return mine, own, err
	}
	for _, f := range signatures {
		counts, err := v.stillCounts(ctx, f, roster)
		if err != nil {
			return mine, own, err
		}
		if !counts {
			continue
		}
		about := cmp.Or(f.Batch, "–")
		if id, position, ok := f.Line(); ok {
			about = fmt.Sprintf(w.LineTitle, position+1, id)
		}
		row := []staff.Cell{{Text: v.At(f.At), URL: v.signatureURL(f)}, {Text: w.FirstKinds[string(f.Kind)]}, {Text: about}, {Text: v.mode(f.Live)}}
		if f.Signed.Person == v.Acting.Person.ID {
			own.Rows = append(own.Rows, row)
		} else if f.Kind == disbursements.SignPeople || f.Kind == disbursements.SignPolicy { // the others are in their batch's row
			mine.Rows = append(mine.Rows, row)
		}
	}
	return mine, own, nil
}

// stillCounts reports whether a first signature waits for a second one: what it is about has not changed since, and is not decided.
func (v *visit) stillCounts(ctx context.Context, f disbursements.FirstSignature, roster disbursement.Roster) (bool, error) {
	in := disbursements.Scope{TenantID: f.TenantID}
	switch f.Kind {
	case disbursements.SignPeople, disbursements.SignPolicy:
		return f.Number == roster.Changes+1, nil
	case disbursements.SignResume:
		b, err := v.d.cfg.Batches.Batch(ctx, in, f.Batch)
		if err != nil {
			return false, butUnknown(err)
		}
		return b.Held() && b.Status.Live() && f.Number == int64(b.Holds), nil
	case disbursements.SignSettle:
		id, position, ok := f.Line()
		if !ok || f.Settle == nil {
			return false, nil
		}
		if _, err := v.d.cfg.Batches.Batch(ctx, in, id); err != nil {
			return false, butUnknown(err)
		}
		list, err := v.d.cfg.Batches.Lines(ctx, id, disbursements.LineQuery{From: position, Size: 1})
		if err != nil || len(list) == 0 || list[0].Position != position {
			return false, err
		}
		l := list[0]
		return l.Doubtful() && f.Number == int64(l.Settled+1) && f.Settle.Shown == shown(l), nil
	}
	return false, nil
}

// butUnknown returns an error, but for a batch that the agency does not have.
func butUnknown(err error) error {
	if errors.Is(err, disbursements.ErrUnknown) {
		return nil
	}
	return err
}

// since is when a step began to wait.
func since(s step, b disbursements.Batch) time.Time {
	switch s.verdict {
	case digest.Resume:
		return b.Hold.Since
	case digest.Release:
		if n := len(b.Sealing.Approvals); n > 0 {
			return slices.MaxFunc(b.Sealing.Approvals, func(a, c disbursement.Approved) int { return a.At.Compare(c.At) }).At
		}
	case digest.Approve, digest.Reject:
	}
	return b.SealedAt
}

// signatureURL is where the second signature is given.
func (v *visit) signatureURL(f disbursements.FirstSignature) string {
	switch f.Kind {
	case disbursements.SignResume:
		return v.URL(rootBatches + "/" + f.Batch)
	case disbursements.SignSettle:
		if id, position, ok := f.Line(); ok {
			return v.URL(linePath(disbursements.Batch{Batch: disbursement.Batch{ID: id}}, position))
		}
	case disbursements.SignPeople, disbursements.SignPolicy:
	}
	return v.URL(rootPeople, fieldMode, disbursement.Mode(f.Live))
}
