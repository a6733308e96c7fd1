package receipts

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"quittance/checkout"
	"quittance/document"
)

// Version is the version of the claims.
//
// Version 1 had one time for iat and pd, and neither f nor o. Its tokens are on paper and stay valid.
const Version = 2

// maxService is the number of characters of a service in a token.
const maxService = 40

// Claims are what a token says: the payment of one due, without the name or the number of
// anybody. Names of members are short, because the token is printed as a QR code.
type Claims struct {
	Version  int    `json:"v"`
	Issuer   string `json:"iss"` // host of the pages
	ID       string `json:"jti"` // transaction id, see TransactionID
	IssuedAt int64  `json:"iat"` // seconds; when the service learned of the payment, not the time of the document
	PaidAt   int64  `json:"pd"`  // seconds; the operator's time of its approval, if it told one

	NoticeRef  string `json:"n"`
	PaymentRef string `json:"pr"`
	Agency     string `json:"t"` // slug
	Service    string `json:"s,omitempty"`
	Amount     int64  `json:"a"`           // of the due, minor units, without fees
	Fee        int64  `json:"f,omitempty"` // paid for this due beside Amount, minor units
	Currency   string `json:"c"`
	Channel    string `json:"ch"`
	// Subject is the end of the reference of who owed it; empty if unknown or erased.
	Subject string `json:"sr,omitempty"`
	Partial int    `json:"pt,omitempty"` // 1 if a part of the due stayed owed
	// Order is the hash of the agency's dossier number, see OrderHash; empty if there is none.
	Order string `json:"o,omitempty"`
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
	c := Claims{
		Version: Version, Issuer: host, ID: id, IssuedAt: s.RecordedAt().Unix(), PaidAt: s.PaidAt().Unix(),
		NoticeRef: due.NoticeRef, PaymentRef: s.PaymentRef, Agency: agency, Service: shortened(due.ServiceLabel),
		Amount: due.Amount, Fee: due.Fee, Currency: s.Currency, Channel: string(s.Collection.Channel), Subject: document.SubjectEnd(due.SubjectRef),
	}
	if due.Partial() {
		c.Partial = 1
	}
	if order := s.AgencyOrderID(); order != "" {
		c.Order = OrderHash(id, order)
	}
	return c, nil
}

// orderBytes is the length of a hash of a dossier number, short for the QR code.
const orderBytes = 8

// OrderHash returns what a token says of a dossier number: the first 8 bytes of the SHA-256 of
// jti, a full stop and the number, in base64url. Who holds the paper can compare its number. The
// salt makes equal numbers unlike each other; it does not hide a number from somebody who tries all.
func OrderHash(jti, order string) string {
	sum := sha256.Sum256([]byte(jti + "." + order))
	return base64.RawURLEncoding.EncodeToString(sum[:orderBytes])
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
	if c.Version == 1 {
		record.Version, record.PaidAt, record.Fee, record.Order = 1, record.IssuedAt, 0, ""
	}
	return c == record
}

// PaymentDigest returns the base64url of a SHA-256 over what never changes of a payment: the version, jti,
// amount, currency, fee and references of the claims, each as text with its number of bytes before it. Version
// 1 says no fee. Who sends it to somebody with the record learns whether the record agrees, and tells nothing
// that the record does not say. It cannot be guessed: a reference of a payment has 16 digits.
func (c Claims) PaymentDigest() string {
	parts := []string{strconv.Itoa(c.Version), c.ID, strconv.FormatInt(c.Amount, 10), c.Currency, c.PaymentRef, c.NoticeRef}
	if c.Version > 1 {
		parts = append(parts, strconv.FormatInt(c.Fee, 10))
	}
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s,", len(part), part) // a hash never fails
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// HasPayment reports whether digest is the PaymentDigest of a token of any version for the payment of these
// claims. What a payment is never changes, so a token that says otherwise is not ours, whoever signed it.
func (c Claims) HasPayment(digest string) bool {
	for c.Version = Version; c.Version > 0; c.Version-- {
		if c.PaymentDigest() == digest {
			return true
		}
	}
	return false
}

// Paid returns the time of the payment, in UTC.
func (c Claims) Paid() time.Time { return time.Unix(c.PaidAt, 0).UTC() }

// Issued returns when the service learned of the payment, in UTC. The key of that time signs.
func (c Claims) Issued() time.Time { return time.Unix(c.IssuedAt, 0).UTC() }

// dated reports whether the times of the claims fit each other as their version demands. A payment
// is dated at most a day after the service learned of it.
func (c Claims) dated() bool {
	if c.Version == 1 {
		return c.IssuedAt == c.PaidAt
	}
	return c.PaidAt <= c.IssuedAt+int64(24*time.Hour/time.Second)
}
