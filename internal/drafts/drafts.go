package drafts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/secret"
)

// Asker sends a command and awaits its answer: internal/commands.
type Asker interface {
	AskWithin(ctx context.Context, cmd checkout.Command, patience time.Duration) (checkout.Answer, error)
}

// References makes numbers for people to read: sessions.References.
type References interface {
	PaymentRef() (string, error)
	NoticeRef() (string, error)
	// PaymentID makes the paymentId of the deprecated cash-in surface.
	PaymentID() (int64, error)
}

// Personal seals and erases contact data: personal.Store.
type Personal interface {
	SealCustomer(ctx context.Context, sessionID string, c checkout.Customer) ([]byte, error)
	// Adopt gives the contact data of a session that was not created to another one.
	Adopt(ctx context.Context, from, to string) error
	// Forget erases the contact data of a session that was not created.
	Forget(ctx context.Context, sessionID string) error
}

// Config of a Maker. All fields are required.
type Config struct {
	Commands   Asker
	References References
	Personal   Personal
	// Keys seal client_secrets.
	Keys *secret.Keys
	IDs  checkout.IDs
	// Partition is the partition of an agency's commands, which its session ids carry.
	Partition func(tenantID string) int32
	// RequestID names the request of a context in the log.
	RequestID func(context.Context) string
	Log       *slog.Logger
}

// Maker makes sessions. It is safe for concurrent use.
type Maker struct{ cfg Config }

// New makes a Maker.
func New(cfg Config) (*Maker, error) {
	if cfg.Commands == nil || cfg.References == nil || cfg.Personal == nil || cfg.Keys == nil || cfg.Partition == nil ||
		cfg.RequestID == nil || cfg.Log == nil {
		return nil, errors.New("drafts: all fields of the configuration are required")
	}
	return &Maker{cfg}, nil
}

// ValidKey reports whether an Idempotency-Key has 1 to 255 printable ASCII characters.
// net/http has removed the white space around it.
func ValidKey(key string) bool {
	return key != "" && len(key) <= 255 && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
}

// Complete gives a drafted session its ids, numbers and client_secret, and replaces its contact
// data by their sealed form, which can be erased. A session without contact data costs no query.
// CreatedAt, TenantID, Mode, Items and Cashin must be set. The error wraps
// commands.ErrUnavailable if contact data could not be sealed.
func (m *Maker) Complete(ctx context.Context, s *checkout.Session) error {
	if err := m.mint(s); err != nil {
		return err
	}
	if s.Customer == nil {
		return nil
	}
	sealed, err := m.cfg.Personal.SealCustomer(ctx, s.ID, *s.Customer)
	if err != nil {
		return fmt.Errorf("creating a session: %w: %w", commands.ErrUnavailable, err)
	}
	s.CustomerSealed, s.Customer = sealed, nil
	return nil
}

// mint gives the session and its items their ids and numbers. The first item has those of the
// session.
func (m *Maker) mint(s *checkout.Session) (err error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	s.ID = m.cfg.IDs.NewSession(s.CreatedAt, m.cfg.Partition(s.TenantID), random)
	if s.PaymentRef, err = m.cfg.References.PaymentRef(); err != nil {
		return err
	}
	if s.Cashin != nil {
		if s.Cashin.PaymentID, err = m.cfg.References.PaymentID(); err != nil {
			return err
		}
	}
	if err := m.number(&s.NoticeRef, &s.NoticeID, &s.TransactionID); err != nil {
		return err
	}
	for i := range s.Items {
		it := &s.Items[i]
		if i == 0 {
			it.NoticeRef, it.NoticeID, it.TransactionID = s.NoticeRef, s.NoticeID, s.TransactionID
		} else if err := m.number(&it.NoticeRef, &it.NoticeID, &it.TransactionID); err != nil {
			return err
		}
	}
	if s.Mode != checkout.ModeEmbedded {
		return nil
	}
	return m.sealClientSecret(s)
}

// number makes the number and the ids of one due.
func (m *Maker) number(noticeRef, noticeID, transactionID *string) (err error) {
	if *noticeRef, err = m.cfg.References.NoticeRef(); err != nil {
		return err
	}
	for _, id := range []*string{noticeID, transactionID} {
		u, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("making a UUID: %w", err)
		}
		*id = u.String()
	}
	return nil
}

// LabelClientSecret separates the seals of client_secrets from other seals.
const LabelClientSecret = "client_secret"

func (m *Maker) sealClientSecret(s *checkout.Session) (err error) {
	plain := checkout.PrefixClientSecret + rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(plain))
	s.ClientSecretHash = sum[:]
	if s.ClientSecretSealed, err = m.cfg.Keys.Seal(LabelClientSecret, []byte(plain), []byte(s.ID)); err != nil {
		return fmt.Errorf("sealing a client_secret: %w", err)
	}
	return nil
}

// ClientSecret opens the client_secret of a session that has one.
func (m *Maker) ClientSecret(s checkout.Session) (string, error) {
	plain, err := m.cfg.Keys.Open(LabelClientSecret, s.ClientSecretSealed, []byte(s.ID))
	if err != nil {
		return "", fmt.Errorf("opening the client_secret of a session: %w", err)
	}
	return string(plain), nil
}

// Create asks the processor to carry out do, which creates the session s, and waits for its
// answer. Contact data are erased if s was not created, and belong to the session of the answer
// if do updated that one instead. After an error the command may still be carried out. Errors
// are those of commands.Client.AskWithin.
func (m *Maker) Create(ctx context.Context, s *checkout.Session, do checkout.Action, patience time.Duration) (checkout.Answer, error) {
	answer, err := m.cfg.Commands.AskWithin(ctx, checkout.Command{
		At: s.CreatedAt, TenantID: s.TenantID, SessionID: s.ID, ApplicationID: s.ApplicationID, Live: s.Live, Do: do,
	}, patience)
	if err != nil {
		return answer, err // the processor may still need the contact data
	}
	other := answer.Session != nil && answer.Session.ID != s.ID
	switch {
	case answer.Code != checkout.CodeOK, answer.Replayed && other:
		m.forget(ctx, s, do)
	case other && len(s.CustomerSealed) > 0:
		m.adopt(ctx, s.ID, answer.Session.ID)
	}
	return answer, nil
}

// forget erases the contact data of a session that was not created. If it fails, they are
// erased by their age.
func (m *Maker) forget(ctx context.Context, s *checkout.Session, do checkout.Action) {
	pay, _ := do.(checkout.PartnerPay)
	if len(s.CustomerSealed) == 0 && len(pay.Collect.PayerSealed) == 0 {
		return
	}
	if err := m.cfg.Personal.Forget(ctx, s.ID); err != nil {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "contact data of a refused creation stay sealed for 61 days", m.request(ctx), slog.Any("error", err))
	}
}

// adoptWithin bounds the adoption of contact data.
const adoptWithin = 2 * time.Second

// adopt hands over the keys of contact data, also when the caller has hung up. If it fails, the
// read model does it.
func (m *Maker) adopt(ctx context.Context, from, to string) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), adoptWithin)
	defer cancel()
	if err := m.cfg.Personal.Adopt(bounded, from, to); err != nil {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "keys of contact data stay with a session that was not made until the read model moves them",
			m.request(ctx), slog.Any("error", err))
	}
}

func (m *Maker) request(ctx context.Context) slog.Attr {
	return slog.String("request_id", m.cfg.RequestID(ctx))
}
