package sessions

import (
	"encoding/json"
	"fmt"
	"time"

	"quittance/checkout"
	"quittance/internal/sessions/internal/db"
)

// What stands as JSON in a column.
type (
	offerJSON struct {
		ID      string           `json:"id"`
		Channel checkout.Channel `json:"channel"`
		Fee     int64            `json:"fee"`
	}
	collectionJSON struct {
		ID            string                    `json:"id"`
		OfferID       string                    `json:"offer_id"`
		Channel       checkout.Channel          `json:"channel"`
		Status        checkout.CollectionStatus `json:"status"`
		Amount        int64                     `json:"amount"`
		Fee           int64                     `json:"fee"`
		Currency      string                    `json:"currency"`
		PayerMasked   string                    `json:"payer_masked,omitempty"`
		RequestedAt   time.Time                 `json:"requested_at,omitzero"`
		NotAfter      time.Time                 `json:"not_after,omitzero"`
		WindowEndsAt  time.Time                 `json:"window_ends_at,omitzero"`
		Account       string                    `json:"account,omitempty"`
		Enquiries     int                       `json:"enquiries"`
		LastEnquiryAt time.Time                 `json:"last_enquiry_at,omitzero"`
		NextEnquiryAt time.Time                 `json:"next_enquiry_at,omitzero"`
		Mismatched    bool                      `json:"mismatched"`
		OperatorRef   string                    `json:"operator_ref,omitempty"`
		FailureCode   checkout.FailureCode      `json:"failure_code,omitempty"`
		DecidedAt     time.Time                 `json:"decided_at,omitzero"`

		RedirectSealed []byte    `json:"redirect_sealed,omitempty"`
		Clerk          string    `json:"clerk,omitempty"`
		ReversedBy     string    `json:"reversed_by,omitempty"`
		ReversedAt     time.Time `json:"reversed_at,omitzero"`
	}
)

// toRow maps a session to its row. Contact data and what opens a client_secret are
// not kept: events do not carry them. Nor are orphans: they are for deciding.
func toRow(s checkout.Session) (db.UpsertSessionParams, error) {
	row := db.UpsertSessionParams{
		ID: s.ID, ApplicationID: s.ApplicationID, TenantID: s.TenantID, Livemode: s.Live, Platform: s.Platform,
		OrderID: s.OrderID, Amount: s.Amount, Currency: s.Currency, Mode: string(s.Mode),
		ServiceCode: text(s.ServiceCode), ServiceLabel: text(s.ServiceLabel), Description: text(s.Description), Note: text(s.Note),
		CustomerID: text(s.CustomerID), SuccessUrl: text(s.SuccessURL), CancelUrl: text(s.CancelURL),
		PaymentRef: s.PaymentRef, NoticeID: s.NoticeID, NoticeRef: s.NoticeRef, TransactionID: s.TransactionID,
		CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, Status: string(s.Status), Sequence: s.Sequence,
		FailureCode: text(string(s.FailureCode)), FailureMessage: text(s.FailureMessage),
		ClientSecretHash: s.ClientSecretHash,
	}
	if !s.EndedAt.IsZero() {
		row.EndedAt = &s.EndedAt
	}
	metadata := s.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	offers := make([]offerJSON, len(s.Offers))
	for i, o := range s.Offers {
		offers[i] = offerJSON(o)
	}
	var err error
	if row.Metadata, err = json.Marshal(metadata); err != nil {
		return row, fmt.Errorf("metadata of %s: %w", s.ID, err)
	}
	if row.Offers, err = json.Marshal(offers); err != nil {
		return row, fmt.Errorf("offers of %s: %w", s.ID, err)
	}
	if s.Collection != nil {
		if row.Collection, err = json.Marshal(collectionJSON(*s.Collection)); err != nil {
			return row, fmt.Errorf("collection of %s: %w", s.ID, err)
		}
	}
	return row, nil
}

// fromRow maps a row back.
func fromRow(r db.Session) (checkout.Session, error) {
	s := checkout.Session{
		ID: r.ID, ApplicationID: r.ApplicationID, TenantID: r.TenantID, Live: r.Livemode, Platform: r.Platform,
		OrderID: r.OrderID, Amount: r.Amount, Currency: r.Currency, Mode: checkout.Mode(r.Mode),
		ServiceCode: value(r.ServiceCode), ServiceLabel: value(r.ServiceLabel), Description: value(r.Description), Note: value(r.Note),
		CustomerID: value(r.CustomerID), SuccessURL: value(r.SuccessUrl), CancelURL: value(r.CancelUrl),
		PaymentRef: r.PaymentRef, NoticeID: r.NoticeID, NoticeRef: r.NoticeRef, TransactionID: r.TransactionID,
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), Status: checkout.Status(r.Status), Sequence: r.Sequence,
		FailureCode: checkout.FailureCode(value(r.FailureCode)), FailureMessage: value(r.FailureMessage),
		ClientSecretHash: r.ClientSecretHash,
	}
	if r.EndedAt != nil {
		s.EndedAt = r.EndedAt.UTC()
	}
	if err := json.Unmarshal(r.Metadata, &s.Metadata); err != nil {
		return s, fmt.Errorf("metadata of %s: %w", r.ID, err)
	}
	if len(s.Metadata) == 0 {
		s.Metadata = nil
	}
	var offers []offerJSON
	if err := json.Unmarshal(r.Offers, &offers); err != nil {
		return s, fmt.Errorf("offers of %s: %w", r.ID, err)
	}
	for _, o := range offers {
		s.Offers = append(s.Offers, checkout.Offer(o))
	}
	if r.Collection != nil {
		var c collectionJSON
		if err := json.Unmarshal(r.Collection, &c); err != nil {
			return s, fmt.Errorf("collection of %s: %w", r.ID, err)
		}
		collection := checkout.Collection(c)
		s.Collection = &collection
	}
	return s, nil
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
