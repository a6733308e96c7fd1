package signed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/secret"
)

// manifest says which rows of a family were signed when a transaction of ours last changed one.
type manifest struct {
	of Family
	// from is the family whose manifest was read: until staff have one of their own, theirs is that of the registry.
	from      Family
	known     bool   // there is one
	content   []byte // what is signed
	signature []byte
}

// contents of a manifest.
type contents struct {
	// Revision is the number of the manifest. Each has the one after its predecessor's.
	Revision int64 `json:"revision"`
	// Generation is that of the tables that were signed then. The rows of a later one are not signed yet.
	Generation int `json:"generation,omitempty"`
	// Tables has the signatures of each table.
	Tables map[string]sums `json:"tables"`
	// Families are those that have a manifest of their own. One of them that is missing was removed.
	Families []Family `json:"families,omitempty"`
	// Lost are the tables that were not as an earlier manifest said, until somebody accepts them.
	Lost []string `json:"lost,omitempty"`
}

type sums struct {
	Rows   int    `json:"rows"`
	Digest []byte `json:"digest"` // SHA-256 of the sorted signatures
}

// readManifests reads the manifests of all families.
func readManifests(ctx context.Context, q Querier) (out []manifest, err error) {
	for _, f := range families {
		m := manifest{of: f, from: f}
		rows, _ := q.Query(ctx, `SELECT content, signature FROM `+f.table()) // the rows return its error
		_, err = pgx.ForEachRow(rows, []any{&m.content, &m.signature}, func() error {
			m.known, m.content, m.signature = true, bytes.Clone(m.content), bytes.Clone(m.signature)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of rows: %w", err)
		}
		if f != OfRegistry && !m.known && !out[0].names(f) {
			m = out[0]
			m.of = f
		}
		out = append(out, m)
	}
	return out, nil
}

// names reports whether the manifest says that a family has one of its own. It need not be verified: whoever changes it
// makes it void.
func (m manifest) names(f Family) bool {
	var c contents
	return m.known && json.Unmarshal(m.content, &c) == nil && slices.Contains(c.Families, f)
}

// read returns the contents; false for a manifest that is missing or not ours.
func (m manifest) read(keys *secret.Keys) (c contents, ok bool) {
	if !m.known || !keys.VerifySignature(m.from.label(), m.signed(), m.signature) {
		return contents{}, false
	}
	return c, json.Unmarshal(m.content, &c) == nil
}

// signed returns the bytes that the signature is of. They are not those of a row, which have 32 bytes.
func (m manifest) signed() []byte {
	return append([]byte("quittance manifest of rows 1\n"), m.content...)
}

// differs returns the tables whose signatures are not those of the manifest, and those that it calls
// lost, sorted. A missing manifest says nothing about an installation without signatures; otherwise all
// tables with signatures differ.
func (m manifest) differs(keys *secret.Keys, rows []Row) []string {
	now := summed(rows)
	c, ok := m.read(keys)
	var out []string
	for _, t := range Tables {
		was, is := c.Tables[t.Name], now[t.Name]
		if t.Of != m.of || ok && t.Since > c.Generation && is.Rows == 0 {
			continue // signed rows of a later generation show that an earlier manifest was put back
		}
		switch {
		case ok && slices.Contains(c.Lost, t.Name), ok && (was.Rows != is.Rows || !bytes.Equal(was.Digest, is.Digest)), !ok && is.Rows > 0:
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return out
}

// summed returns the sums of the signatures of each table that has some.
func summed(rows []Row) map[string]sums {
	signatures := map[string][][]byte{}
	for _, r := range rows {
		if r.Signed {
			signatures[r.Table] = append(signatures[r.Table], r.signature)
		}
	}
	out := map[string]sums{}
	for table, list := range signatures {
		slices.SortFunc(list, bytes.Compare)
		h := sha256.New()
		for _, s := range list {
			h.Write(part(nil, s))
		}
		out[table] = sums{len(list), h.Sum(nil)}
	}
	return out
}

// write replaces the manifest by one of these rows. That of the registry also has the signatures of the other families,
// for a release that knows none.
func (m manifest) write(ctx context.Context, tx pgx.Tx, keys *secret.Keys, rows []Row, lost []string, at time.Time) error {
	before, _ := m.read(keys)
	next := manifest{of: m.of, from: m.of, known: true}
	var err error
	if next.content, err = json.Marshal(contents{Revision: before.Revision + 1, Generation: generation, Tables: summed(rows), Families: families[1:], Lost: lost}); err != nil {
		return err
	}
	if next.signature, err = keys.Sign(m.of.label(), next.signed()); err != nil {
		return fmt.Errorf("signing the manifest of rows: %w", err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO `+m.of.table()+` (content, signature, signed_at) VALUES ($1, $2, $3)
		ON CONFLICT (singleton) DO UPDATE SET content = excluded.content, signature = excluded.signature, signed_at = excluded.signed_at`,
		next.content, next.signature, at); err != nil {
		return fmt.Errorf("storing the manifest of rows: %w", err)
	}
	return nil
}

// ErrNotSigned says that rows are not signed yet: an earlier release has written them.
var ErrNotSigned = errors.New("rows of Postgres that decide are not signed yet: run `quittance migrate` with QUITTANCE_MASTER_KEYS")

// ErrOtherKeys says that rows are signed, and none of them with a master key of this process.
var ErrOtherKeys = errors.New("no row of Postgres that decides is signed with these master keys: QUITTANCE_MASTER_KEYS lacks the key that signed them, or marks it :open before `quittance secrets reseal`")

// Findings are what is not as it was signed.
type Findings struct {
	// Rows are those that do not verify, by table.
	Rows []Row
	// Lost are the tables from which signed rows were deleted, or in which some were put back to an
	// earlier state, sorted.
	Lost []string
	// NotSigned means that the rows of a table, or of all, are not signed yet: an earlier release has
	// written them.
	NotSigned bool
	// Outdated means that the manifest is of an earlier release, which signed fewer tables.
	Outdated bool
	// NoneVerifies means that rows are signed and none verifies.
	NoneVerifies bool
}

// Err returns ErrNotSigned or ErrOtherKeys if no row can be used, or if `migrate` has not signed yet what this release
// signs: accounts of citizens are proved with it, and a role that began before would have none believed.
func (f Findings) Err() error {
	switch {
	case f.NotSigned, f.Outdated:
		return ErrNotSigned
	case f.NoneVerifies:
		return ErrOtherKeys
	}
	return nil
}

// Counts returns the number of findings of every table. A table of Lost counts one more.
func (f Findings) Counts() map[string]int {
	out := map[string]int{}
	for _, t := range Tables {
		out[t.Name] = 0
	}
	for _, r := range f.Rows {
		out[r.Table]++
	}
	for _, t := range f.Lost {
		out[t]++
	}
	return out
}

// Look finds what is not as it was signed, in a transaction that sees one snapshot. keys may be those
// of a role that verifies.
func Look(ctx context.Context, tx pgx.Tx, keys *secret.Keys) (Findings, error) {
	rows, err := all(ctx, tx, NewVerifier(keys))
	if err != nil {
		return Findings{}, err
	}
	return Inspect(ctx, tx, keys, rows)
}

// Inspect is Look for rows that were read in the same transaction, those of all tables.
func Inspect(ctx context.Context, q Querier, keys *secret.Keys, rows []Row) (Findings, error) {
	manifests, err := readManifests(ctx, q)
	if err != nil {
		return Findings{}, err
	}
	var f Findings
	for _, m := range manifests {
		tables := m.unsigned(keys, rows)
		f.Lost = append(f.Lost, m.differs(keys, rows)...)
		f.NotSigned = f.NotSigned || needing(rows, tables)
		f.Outdated = f.Outdated || m.known && len(tables) > 0
	}
	slices.Sort(f.Lost)
	some := false
	for _, r := range rows {
		if !r.Verified {
			f.Rows = append(f.Rows, r)
		}
		f.NoneVerifies, some = f.NoneVerifies || r.Signed, some || r.Signed && r.Verified
	}
	f.NoneVerifies = f.NoneVerifies && !some
	sortRows(f.Rows)
	return f, nil
}

// unsigned returns the tables whose rows are not signed yet: those that came after the manifest, or all
// if there is none. It returns none if one of them has a signature: somebody has put an earlier manifest back, or
// removed it. Without keys it believes the manifest; whoever then signs has keys.
func (m manifest) unsigned(keys *secret.Keys, rows []Row) []string {
	c, ok := m.read(keys)
	if keys == nil && m.known {
		ok = json.Unmarshal(m.content, &c) == nil
	}
	var out []string
	for _, t := range Tables {
		if t.Of == m.of && (!m.known || ok && t.Since > c.Generation) {
			out = append(out, t.Name)
		}
	}
	if slices.ContainsFunc(rows, func(r Row) bool { return r.Signed && slices.Contains(out, r.Table) }) {
		return nil
	}
	return out
}

// needing reports whether a row of these tables has no signature and needs one.
func needing(rows []Row, tables []string) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return slices.Contains(tables, r.Table) && r.unsigned() })
}

// sortRows sorts rows as Tables does, and by key.
func sortRows(rows []Row) {
	at := map[string]int{}
	for i, t := range Tables {
		at[t.Name] = i
	}
	slices.SortFunc(rows, func(a, b Row) int {
		if a.Table != b.Table {
			return at[a.Table] - at[b.Table]
		}
		return bytes.Compare([]byte(a.Key), []byte(b.Key))
	})
}
