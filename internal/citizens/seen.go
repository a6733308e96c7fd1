package citizens

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quittance/internal/secret"
)

// Due is what a session saw of a due.
type Due struct {
	Ref         string
	Outstanding int64 // minor units of Currency
	Currency    string
}

// seenMAC is the length of the MAC of a due. It need not withstand anybody who can write to
// the database.
const seenMAC = 16

func (s *Store) subjectKey(q Subject) []byte {
	h := s.seen("subject|" + q.AgencyID + "|" + strconv.FormatBool(q.Live) + "|" + q.Ref)
	return h[:]
}

func (s *Store) mac(subject []byte, d Due) []byte {
	h := s.seen("due|" + string(subject) + "|" + d.Currency + "|" + strconv.FormatInt(d.Outstanding, 10) + "|" + d.Ref)
	return h[:seenMAC]
}

// Saw remembers, until the session ends, what it saw of all dues of a subject. Only what it saw
// last counts.
func (s *Store) Saw(ctx context.Context, session secret.Text, subject Subject, dues []Due) error {
	key := s.subjectKey(subject)
	macs := make([]byte, 0, len(dues)*seenMAC)
	for _, d := range dues {
		macs = append(macs, s.mac(key, d)...)
	}
	_, err := s.cfg.Pool.Exec(ctx, `INSERT INTO citizen_seen (token, subject, macs) SELECT token, $2, $3 FROM citizen_sessions WHERE token = $1
		ON CONFLICT (token, subject) DO UPDATE SET macs = excluded.macs`, tokenHash(session), key, macs)
	return failed("remembering what a citizen saw", err)
}

// HasSeen reports for each due whether it is what the session saw last of it.
func (s *Store) HasSeen(ctx context.Context, session secret.Text, subject Subject, dues ...Due) ([]bool, error) {
	key := s.subjectKey(subject)
	var macs []byte
	err := s.cfg.Pool.QueryRow(ctx, `SELECT macs FROM citizen_seen WHERE token = $1 AND subject = $2`, tokenHash(session), key).Scan(&macs)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, failed("reading what a citizen saw", err)
	}
	known := slices.Collect(slices.Chunk(macs, seenMAC))
	seen := make([]bool, len(dues))
	for i, d := range dues {
		seen[i] = slices.ContainsFunc(known, func(m []byte) bool { return bytes.Equal(m, s.mac(key, d)) })
	}
	return seen, nil
}
