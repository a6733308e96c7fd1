package personal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/contact"
	"quittance/internal/secret"
)

// Errors of sealed values, for errors.Is.
var (
	// ErrErased says that the data key is deleted: nobody can read the value any more.
	ErrErased = errors.New("the personal data is erased")
	// ErrMalformed says that the bytes are not a value of this session.
	ErrMalformed = errors.New("not sealed personal data of this session")
)

// Label of the data keys' seal (internal/secret). The additional data is the row's id: its
// 16 bytes.
const Label = "personal data"

// formatV1 is the first byte of a sealed value. The id of the data key follows, then nonce
// and output of AES-256-GCM.
const formatV1 = 1

const headerSize = 1 + len(uuid.UUID{})

// queryTimeout bounds a query, so that a dead database does not hold a request.
const queryTimeout = 2 * time.Second

// use says what a value is. It is part of the additional data, so that one use's value
// does not open as the other's.
type use byte

const (
	useCustomer use = 'c'
	usePayer    use = 'p'
	useMessage  use = 'm'
	useLine     use = 'l'
)

// Config configures a Store. All fields are required.
type Config struct {
	Pool *pgxpool.Pool
	Keys *secret.Keys
	Now  func() time.Time
}

// Store seals and opens personal data. It is safe for concurrent use.
type Store struct {
	cfg  Config
	keys group
}

// New makes a store on a migrated database.
func New(cfg Config) (*Store, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Now == nil {
		return nil, errors.New("personal data: Pool, Keys and Now are required")
	}
	s := &Store{cfg: cfg}
	s.keys.write = s.insert
	return s, nil
}

// customer is the stored form of contact data.
type customer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
	Phone string `json:"phone,omitempty"`
	// Address is only of the deprecated cash-in surface.
	Address string `json:"address,omitempty"`
}

// SealCustomer seals the contact data of a session that is about to be created. It writes
// one row. If the session is not created, delete the row with Forget.
func (s *Store) SealCustomer(ctx context.Context, sessionID string, c checkout.Customer) ([]byte, error) {
	plain, err := json.Marshal(customer(c))
	if err != nil {
		return nil, fmt.Errorf("sealing contact data: %w", err)
	}
	return s.seal(ctx, sessionID, useCustomer, plain, c.Phone)
}

// SealPayer seals a payer's number, in the operator's form. It writes one row.
func (s *Store) SealPayer(ctx context.Context, sessionID, payer string) ([]byte, error) {
	return s.seal(ctx, sessionID, usePayer, []byte(payer), payer)
}

// Customer opens what SealCustomer sealed. Errors wrap ErrErased, ErrMalformed,
// secret.ErrUnknownKey, or are those of a Postgres that is away.
func (s *Store) Customer(ctx context.Context, sessionID string, sealed []byte) (checkout.Customer, error) {
	plain, err := s.open(ctx, sessionID, useCustomer, sealed)
	if err != nil {
		return checkout.Customer{}, err
	}
	var c customer
	if json.Unmarshal(plain, &c) != nil { // its error would quote the data
		return checkout.Customer{}, fmt.Errorf("opening contact data: %w", ErrMalformed)
	}
	return checkout.Customer(c), nil
}

// Payer opens what SealPayer sealed. Errors are those of Customer.
func (s *Store) Payer(ctx context.Context, sessionID string, sealed []byte) (string, error) {
	plain, err := s.open(ctx, sessionID, usePayer, sealed)
	return string(plain), err
}

// PayerOf returns the number of a session that has the masked form (contact.Mask), which is all that events keep
// of the number that paid. It is in the session's data keys, by which it can be erased. The error wraps ErrErased
// if no number has that form, and if two numbers have it: nobody can tell then who paid. Other errors are those
// of Customer.
func (s *Store) PayerOf(ctx context.Context, sessionID, masked string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT id, sealed FROM personal_keys WHERE session_id = $1`, sessionID) // the rows return its error
	var id uuid.UUID
	var row []byte
	found := ""
	_, err := pgx.ForEachRow(rows, []any{&id, &row}, func() error {
		_, phone, err := s.dataKey(id, row)
		switch {
		case err != nil:
			return err
		case phone == "" || contact.Mask(phone) != masked || phone == found:
			return nil
		case found != "":
			return fmt.Errorf("finding a payer's number: two have its masked form: %w", ErrErased)
		}
		found = phone
		return nil
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the keys of a session: %w", err)
	case found == "":
		return "", fmt.Errorf("finding a payer's number: %w", ErrErased)
	}
	return found, nil
}

// Message is the personal part of a message to a person.
type Message struct {
	// To is the number or the e-mail address.
	To string `json:"to"`
	// Variables are what the text says, such as a sign-in code.
	Variables map[string]string `json:"variables,omitempty"`
}

// MessagePrefix begins the ids of messages.
const MessagePrefix = "msg_"

// SealMessage seals the personal part of a message. It writes one row. phone is the number
// of the addressee, by which the message can be erased; empty for none. If the message is not
// sent, delete the row with Forget.
func (s *Store) SealMessage(ctx context.Context, messageID string, m Message, phone string) ([]byte, error) {
	plain, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("sealing a message: %w", err)
	}
	return s.seal(ctx, messageID, useMessage, plain, phone)
}

// Message opens what SealMessage sealed. Errors are those of Customer.
func (s *Store) Message(ctx context.Context, messageID string, sealed []byte) (Message, error) {
	plain, err := s.open(ctx, messageID, useMessage, sealed)
	if err != nil {
		return Message{}, err
	}
	var m Message
	if json.Unmarshal(plain, &m) != nil { // its error would quote the data
		return Message{}, fmt.Errorf("opening a message: %w", ErrMalformed)
	}
	return m, nil
}

// seal seals a value whose key is deleted by an event, or by its age.
func (s *Store) seal(ctx context.Context, sessionID string, as use, plain []byte, phone string) ([]byte, error) {
	return s.sealUntil(ctx, sessionID, as, plain, Canonical(phone), nil)
}

// sealUntil seals a value that is found by a text; keepUntil is that of its key.
func (s *Store) sealUntil(ctx context.Context, sessionID string, as use, plain []byte, text string, keepUntil *time.Time) ([]byte, error) {
	id := uuid.New()
	key := make([]byte, secret.KeySize, secret.KeySize+len(text))
	_, _ = rand.Read(key) // never fails
	aead, err := cipherOf(key)
	if err != nil {
		return nil, fmt.Errorf("sealing personal data: %w", err)
	}
	row, err := s.cfg.Keys.Seal(Label, append(key, text...), id[:])
	if err != nil {
		return nil, fmt.Errorf("sealing personal data: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := s.keys.add(ctx, keyRow{id, sessionID, row, keepUntil}); err != nil {
		return nil, fmt.Errorf("storing a key of personal data: %w", err)
	}
	out := append([]byte{formatV1}, id[:]...)
	return aead.Seal(out, nil, plain, additional(out, as, sessionID)), nil //nolint:gosec // this AEAD makes its own random nonce
}

func (s *Store) open(ctx context.Context, sessionID string, as use, sealed []byte) ([]byte, error) {
	id, err := keyOf(sealed)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var row []byte
	err = s.cfg.Pool.QueryRow(ctx, `SELECT sealed FROM personal_keys WHERE id = $1`, id).Scan(&row)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("opening personal data: %w", ErrErased)
	case err != nil:
		return nil, fmt.Errorf("reading a key of personal data: %w", err)
	}
	return s.openWith(row, sessionID, as, sealed)
}

// keyOf returns the id of the data key of a sealed value. The error is ErrMalformed.
func keyOf(sealed []byte) (uuid.UUID, error) {
	if len(sealed) < headerSize || sealed[0] != formatV1 {
		return uuid.UUID{}, fmt.Errorf("opening personal data: %w", ErrMalformed)
	}
	return uuid.UUID(sealed[1:headerSize]), nil
}

// openWith opens a sealed value, whose header is whole, with the row of its data key.
func (s *Store) openWith(row []byte, sessionID string, as use, sealed []byte) ([]byte, error) {
	header := sealed[:headerSize]
	key, _, err := s.dataKey(uuid.UUID(sealed[1:headerSize]), row)
	if err != nil {
		return nil, err
	}
	aead, err := cipherOf(key)
	if err != nil {
		return nil, fmt.Errorf("opening personal data: %w", err)
	}
	plain, err := aead.Open(nil, nil, sealed[headerSize:], additional(header, as, sessionID))
	if err != nil {
		return nil, fmt.Errorf("opening personal data: %w", ErrMalformed)
	}
	return plain, nil
}

// dataKey opens a row: the data key, and the text by which its value is found, a phone number
// in most rows.
func (s *Store) dataKey(id uuid.UUID, row []byte) (key []byte, text string, err error) {
	plain, err := s.cfg.Keys.Open(Label, row, id[:])
	if err != nil {
		return nil, "", fmt.Errorf("opening a key of personal data: %w", err)
	}
	if len(plain) < secret.KeySize {
		return nil, "", fmt.Errorf("opening a key of personal data: %w", ErrMalformed)
	}
	return plain[:secret.KeySize], string(plain[secret.KeySize:]), nil
}

func cipherOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// additional binds a value to its key, its use and its session.
func additional(header []byte, as use, sessionID string) []byte {
	out := append(make([]byte, 0, headerSize+1+len(sessionID)), header...)
	return append(append(out, byte(as)), sessionID...)
}

// Canonical returns the form in which phone numbers are compared: the national number of a
// Congolese mobile, otherwise the digits after + or 00. It is empty for a text without
// digits.
func Canonical(phone string) string {
	if national, ok := contact.NationalNumber(phone); ok {
		return national
	}
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, phone)
	return strings.TrimPrefix(digits, "00")
}
