package receipts

import (
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"quittance/checkout"
	"quittance/document"
)

// Version is the version of the claims.
const Version = 1

// maxService is the number of characters of a service in a token.
const maxService = 40

// Claims are what a token says: the payment of one due, without the name or the number of
// anybody. Names of members are short, because the token is printed as a QR code.
type Claims struct {
	Version  int    `json:"v"`
	Issuer   string `json:"iss"` // host of the pages
	ID       string `json:"jti"` // transaction id, see TransactionID
	IssuedAt int64  `json:"iat"` // seconds; the time of the payment, not of the document
	PaidAt   int64  `json:"pd"`  // seconds

	NoticeRef  string `json:"n"`
	PaymentRef string `json:"pr"`
	Agency     string `json:"t"` // slug
	Service    string `json:"s,omitempty"`
	Amount     int64  `json:"a"` // of the due, minor units, without fees
	Currency   string `json:"c"`
	Channel    string `json:"ch"`
	// Subject is the end of the reference of who owed it; empty if unknown or erased.
	Subject string `json:"sr,omitempty"`
	Partial int    `json:"pt,omitempty"` // 1 if a part of the due stayed owed
}

// ErrUnpaid says that a session's due is not paid, or that the session has no such due.
var ErrUnpaid = errors.New("the due is not paid")

// NewClaims returns the claims of a paid due. host is that of the pages. The error is
// ErrUnpaid unless the session completed and has a due with the transaction id. A payment
// that was given back has claims: the paper exists, and those who verify it are told.
func NewClaims(host, agency string, s checkout.Session, transactionID string) (Claims, error) {
	due, ok := s.Due(transactionID)
	if !ok || s.Status != checkout.StatusCompleted || s.Collection == nil {
		return Claims{}, ErrUnpaid
	}
	id, ok := IDOf(due.TransactionID)
	if !ok {
		return Claims{}, ErrUnpaid
	}
	at := s.PaidAt().Unix()
	c := Claims{
		Version: Version, Issuer: host, ID: id, IssuedAt: at, PaidAt: at,
		NoticeRef: due.NoticeRef, PaymentRef: s.PaymentRef, Agency: agency, Service: shortened(due.ServiceLabel),
		Amount: due.Amount, Currency: s.Currency, Channel: string(s.Collection.Channel), Subject: document.SubjectEnd(due.SubjectRef),
	}
	if due.Partial() {
		c.Partial = 1
	}
	return c, nil
}

// shortened returns the first characters of a service's name. It never cuts an accent off
// its letter.
func shortened(service string) string {
	runes := []rune(norm.NFC.String(service))
	if len(runes) <= maxService {
		return string(runes)
	}
	return string(runes[:maxService-1]) + "…"
}

// IDOf returns the jti of the receipt of a transaction. ok is false if the id is no UUID.
func IDOf(transactionID string) (jti string, ok bool) {
	id, err := uuid.Parse(transactionID)
	if err != nil {
		return "", false
	}
	return base64.RawURLEncoding.EncodeToString(id[:]), true
}

// TransactionID returns the id of the transaction as the API writes it. ok is false if the
// claims hold none.
func (c Claims) TransactionID() (id string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c.ID)
	if err != nil {
		return "", false
	}
	parsed, err := uuid.FromBytes(raw)
	if err != nil {
		return "", false
	}
	return parsed.String(), true
}

// Agrees reports whether the claims say what the record says. A token of a revoked key
// proves nothing by its signature: it counts if every claim agrees. The subject is not
// compared when the record has none, because an erasure removes it.
func (c Claims) Agrees(record Claims) bool {
	if record.Subject == "" {
		c.Subject = ""
	}
	return c == record
}

// Paid returns the time of the payment, in UTC.
func (c Claims) Paid() time.Time { return time.Unix(c.PaidAt, 0).UTC() }
