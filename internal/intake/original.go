package intake

import (
	"compress/gzip"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/personal"
	"quittance/internal/secret"
)

// Originals are the sealed keys of the files, for `secrets reseal`.
var Originals = personal.Sealed{Table: "statement_originals", Label: "statement original"}

// partSize is the size of a part of a compressed file in bytes.
const partSize = 256 << 10

// putOriginal stores a file. Each file has a key of its own, so that the master key seals only
// keys, and a rotation need not read the files. A part is bound to its number and to whether
// it is the last one: parts cannot be moved or cut off.
func (s *Store) putOriginal(ctx context.Context, tx pgx.Tx, id uuid.UUID, file io.Reader) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	sealed, err := s.cfg.Keys.Seal(Originals.Label, key, id[:])
	if err != nil {
		return fmt.Errorf("sealing the original: %w", err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO statement_originals (id, sealed) VALUES ($1, $2)`, id, sealed); err != nil {
		return fmt.Errorf("keeping the original: %w", err)
	}
	gcm, err := partCipher(key)
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	go func() {
		zip := gzip.NewWriter(out)
		_, err := io.Copy(zip, file)
		_ = out.CloseWithError(errors.Join(err, zip.Close()))
	}()
	defer func() { _ = in.Close() }() // ends the goroutine after an error
	part, next := make([]byte, partSize), make([]byte, partSize)
	n, err := io.ReadFull(in, part)
	for number := uint32(0); ; number++ {
		more := 0
		if err == nil {
			more, err = io.ReadFull(in, next)
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("reading the file: %w", err)
		}
		nonce, bound := partNonce(number, more == 0)
		if _, err := tx.Exec(ctx, `INSERT INTO statement_original_parts (id, part, content) VALUES ($1, $2, $3)`, id, number, gcm.Seal(nil, nonce, part[:n], bound)); err != nil {
			return fmt.Errorf("keeping the original: %w", err)
		}
		if more == 0 {
			return nil
		}
		part, next, n = next, part, more
	}
}

func partCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// partNonce returns the nonce of a part, which occurs once with its key, and what the part is
// bound to.
func partNonce(number uint32, last bool) (nonce, bound []byte) {
	nonce = binary.BigEndian.AppendUint32(make([]byte, 8, 12), number)
	if last {
		return nonce, []byte("last")
	}
	return nonce, []byte("more")
}

// ErrOriginal says that a stored file is damaged or has no key here.
var ErrOriginal = errors.New("the stored original cannot be read")

// errReading says that the database did not give a stored file. It may be there.
var errReading = errors.New("reading a stored original")

// unreadable returns ErrOriginal for an error that says something of the stored file.
func unreadable(err error) error {
	if errors.Is(err, errReading) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOriginal, err)
}

// rowQuerier is a pool or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// originalKey returns the key of a stored file.
func originalKey(ctx context.Context, from rowQuerier, keys *secret.Keys, id uuid.UUID) ([]byte, error) {
	var sealed []byte
	err := from.QueryRow(ctx, `SELECT sealed FROM statement_originals WHERE id = $1`, id).Scan(&sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, unreadable(err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errReading, err)
	}
	key, err := keys.Open(Originals.Label, sealed, id[:])
	if err != nil {
		return nil, unreadable(err)
	}
	return key, nil
}

// readStored writes a stored file to w, with the key that keys open.
func readStored(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, id uuid.UUID, w io.Writer) error {
	key, err := originalKey(ctx, pool, keys, id)
	if err != nil {
		return err
	}
	return writeOriginal(ctx, pool, id, key, w)
}

// writeOriginal writes a stored file to w, with its key. What was written is the file only if the error is nil.
func writeOriginal(ctx context.Context, pool *pgxpool.Pool, id uuid.UUID, key []byte, w io.Writer) error {
	gcm, err := partCipher(key)
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	go func() { _ = out.CloseWithError(writeParts(ctx, pool, gcm, id, out)) }()
	defer func() { _ = in.Close() }() // ends the goroutine after an error
	zip, err := gzip.NewReader(in)
	if err != nil {
		return unreadable(err)
	}
	if _, err := io.Copy(w, zip); err != nil { //nolint:gosec // no bomb: the parts are authenticated, so it is what was compressed here
		return unreadable(err)
	}
	_, err = io.Copy(io.Discard, in) // parts after the end of the compressed file are checked too
	return err
}

// writeParts writes the compressed file. It reads a part at a time, so that no query waits for the reader, and a part ahead, to
// know which one is the last.
func writeParts(ctx context.Context, pool *pgxpool.Pool, gcm cipher.AEAD, id uuid.UUID, w io.Writer) error {
	read := func(number uint32) (part []byte, err error) {
		err = pool.QueryRow(ctx, `SELECT content FROM statement_original_parts WHERE id = $1 AND part = $2`, id, number).Scan(&part)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		return part, err
	}
	part, err := read(0)
	for number := uint32(0); err == nil && part != nil; number++ {
		var next []byte
		if next, err = read(number + 1); err != nil {
			break
		}
		nonce, bound := partNonce(number, next == nil)
		plain, err := gcm.Open(nil, nonce, part, bound)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrOriginal, err)
		}
		if _, err := w.Write(plain); err != nil {
			return err
		}
		part = next
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errReading, err)
	}
	return nil
}

// SweepOriginals deletes the files whose account does not keep them any longer. Their imports and lines
// stay. It returns how many it deleted.
func SweepOriginals(ctx context.Context, pool *pgxpool.Pool, now time.Time) (deleted int64, err error) {
	tag, err := pool.Exec(ctx, `DELETE FROM statement_originals o USING statement_imports i, statement_accounts a
		WHERE o.id = i.id AND i.state <> 'pending' AND a.agency_id = i.agency_id AND a.live = i.live AND a.code = i.code AND i.imported_at < $1::timestamptz - make_interval(years => a.keep_years)`, now)
	if err != nil {
		return 0, fmt.Errorf("deleting files of statements: %w", err)
	}
	return tag.RowsAffected(), nil
}
