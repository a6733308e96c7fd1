package intake

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/personal"
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

// original returns a stored file.
func (s *Store) original(ctx context.Context, id uuid.UUID) ([]byte, error) {
	var sealed []byte
	if err := s.cfg.Pool.QueryRow(ctx, `SELECT sealed FROM statement_originals WHERE id = $1`, id).Scan(&sealed); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOriginal, err)
	}
	key, err := s.cfg.Keys.Open(Originals.Label, sealed, id[:])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOriginal, err)
	}
	gcm, err := partCipher(key)
	if err != nil {
		return nil, err
	}
	rows, err := s.cfg.Pool.Query(ctx, `SELECT content FROM statement_original_parts WHERE id = $1 ORDER BY part`, id)
	if err != nil {
		return nil, err
	}
	parts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, err
	}
	var zipped []byte
	for i, part := range parts {
		nonce, bound := partNonce(uint32(i), i == len(parts)-1)
		if zipped, err = gcm.Open(zipped, nonce, part, bound); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOriginal, err)
		}
	}
	zip, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOriginal, err)
	}
	return io.ReadAll(zip)
}
