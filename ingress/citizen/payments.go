package citizen

import (
	"context"

	"quittance/checkout"
	"quittance/internal/registry"
	"quittance/internal/sessions"
)

// PaymentsPageSize is how many payments a page has, unless another number is asked for.
const PaymentsPageSize = 20

// RecordingState says what is known of an agency's recording of a payment.
type RecordingState string

// The states of recording. A payment that needs a person is in the agency's hands; the citizen
// has paid.
const (
	RecordingUnderWay RecordingState = "recording"
	Recorded          RecordingState = "recorded"
)

// Payment is what a citizen paid at once.
type Payment struct {
	checkout.Session
	// Agency has only its id if the registry does not know it any more.
	Agency registry.Agency
}

// RecordingOf is what is known of the agency's recording of a due of a payment.
func RecordingOf(due checkout.Item) RecordingState {
	if due.Confirmation.SettledAt.IsZero() {
		return RecordingUnderWay
	}
	return Recorded
}

// Payments returns a page of what the account paid, the newest first, and the total on all
// pages. Pages count from 1.
func (s *Service) Payments(ctx context.Context, who Visitor, page, size int) (payments []Payment, total int64, err error) {
	found, total, err := s.cfg.Sessions.PaidBy(ctx, sessions.CitizenFilter{CitizenID: who.ID, Live: s.cfg.Live, Page: page, PageSize: size})
	for _, session := range found {
		agency, ok := s.cfg.Registry.Agency(session.TenantID)
		if !ok {
			agency.ID = session.TenantID
		}
		payments = append(payments, Payment{session, agency})
	}
	return payments, total, err
}
