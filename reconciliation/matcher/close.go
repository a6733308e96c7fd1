package matcher

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/reconciliation/chain"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/record"
)

// approved is a close that two people agreed on and that is not carried out.
type approved struct {
	key                      registry.StatementAccountKey
	caseID, from, to, digest string
}

// closeApproved carries out the closes that people have approved. One that fails is tried again a
// minute later.
func (m *Matcher) closeApproved(ctx context.Context) error {
	list, err := m.approvedCloses(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(m.unclosed, func(k registry.StatementAccountKey, _ time.Time) bool { // another instance has succeeded
		return !slices.ContainsFunc(list, func(a approved) bool { return a.key == k })
	})
	for _, a := range list {
		if ctx.Err() != nil {
			return nil
		}
		if m.rests(a.key) {
			continue
		}
		agency, _ := m.cfg.Registry.Agency(a.key.AgencyID)
		about := []slog.Attr{slog.String("agency", agency.Slug), slog.String("mode", registry.Mode(a.key.Live)), slog.String("account", a.key.Code), slog.String("to", a.to), slog.String("case", a.caseID)}
		var closed *record.Close
		ran, err := m.locked(ctx, a.key, func() (err error) {
			closed, err = m.close(ctx, a)
			return err
		})
		switch {
		case ctx.Err() != nil || err == nil && !ran:
		case err != nil:
			m.unclosed[a.key] = time.Now()
			m.runs.WithLabelValues(outcomeFailed).Inc()
			m.cfg.Log.LogAttrs(ctx, slog.LevelError, "a close that people have approved failed and is tried again", append(about, slog.Any("error", err))...)
		default:
			delete(m.unclosed, a.key)
			if closed == nil {
				continue
			}
			m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "a close was carried out", append(about, slog.String("state", closed.State), slog.String("reason", closed.Reason))...)
		}
	}
	return nil
}

// close runs over the account and then writes the close, or its refusal if the account says
// something else now than what people have approved. It returns nil if the close has its record
// already.
func (m *Matcher) close(ctx context.Context, a approved) (*record.Close, error) {
	if _, err := m.Account(ctx, a.key); err != nil {
		return nil, err
	}
	r, err := m.newRun(a.key)
	if err != nil {
		return nil, err
	}
	if err := r.fence(ctx); err != nil {
		return nil, err
	}
	defer r.client.Close()
	if err := m.reached(stepFenced); err != nil {
		return nil, err
	}
	if err := r.watermarks(ctx); err != nil {
		return nil, err
	}
	var made uint64
	if err := r.cfg.ClickHouse.QueryRow(ctx, "SELECT count() FROM closes WHERE case_id = ?", a.caseID).Scan(&made); err != nil || made > 0 {
		return nil, err
	}
	if err := r.last(ctx); err != nil {
		return nil, err
	}
	if err := r.readCloses(ctx); err != nil {
		return nil, err
	}
	rec, err := r.closeRecord(ctx, a)
	if err != nil {
		return nil, err
	}
	return rec, r.commit(ctx, slices.Values([]record.Record{rec}))
}

// closeRecord returns the record of a close, or of its refusal.
func (r *run) closeRecord(ctx context.Context, a approved) (*record.Close, error) {
	rec := &record.Close{
		CloseID: closeID(a), TenantID: a.key.AgencyID, Livemode: a.key.Live, Account: a.key.Code, FromDay: a.from, ToDay: a.to, State: journal.CloseRefused,
		CaseID: a.caseID, Digest: a.digest, Rule: match.RuleVersion, Watermarks: map[string]string{}, Currency: r.account.Currency, At: r.at,
	}
	p, err := r.period(ctx, a.to)
	var tree *chain.Tree
	if err == nil {
		tree, err = p.chain(ctx)
	}
	var refused *operation.Error
	switch {
	case errors.As(err, &refused):
		rec.Reason = refused.Code
		return rec, nil
	case err != nil:
		return nil, err
	}
	s := p.sheet
	digest, err := s.Digest()
	if err != nil {
		return nil, err
	}
	if digest != a.digest {
		rec.Reason = "period.changed"
		return rec, nil
	}
	rec.State, rec.Previous, rec.Statements, rec.Reports = journal.CloseClosed, s.Previous, s.Statements, s.Reports
	for at, offset := range r.before {
		if topic, _, _ := strings.Cut(at, "/"); topic == schemas.TopicReconciliation {
			offset = r.marks[at] // after what the last run wrote
		}
		rec.Watermarks[at] = strconv.FormatInt(offset, 10)
	}
	rec.ChainVersion, rec.ChainRows, rec.ChainRoot = chain.Version, int64(tree.Size()), tree.Root().String() //nolint:gosec // a count
	rec.MoneyOf, rec.Settling = r.names(), r.settlingCodes()
	rec.SourcesStart, rec.SourcesNew, rec.SourcesMatched, rec.SourcesResolved, rec.SourcesEnd = s.Sources.Start.N, s.Sources.New.N, s.Sources.Matched.N, s.Sources.Resolved.N, s.Sources.End.N
	rec.SourcesStartAmount, rec.SourcesNewAmount, rec.SourcesMatchedAmount, rec.SourcesResolvedAmount, rec.SourcesEndAmount = s.Sources.Start.Amount, s.Sources.New.Amount, s.Sources.Matched.Amount, s.Sources.Resolved.Amount, s.Sources.End.Amount
	rec.LinesStart, rec.LinesNew, rec.LinesMatched, rec.LinesResolved, rec.LinesEnd = s.Lines.Start.N, s.Lines.New.N, s.Lines.Matched.N, s.Lines.Resolved.N, s.Lines.End.N
	rec.LinesStartAmount, rec.LinesNewAmount, rec.LinesMatchedAmount, rec.LinesResolvedAmount, rec.LinesEndAmount = s.Lines.Start.Amount, s.Lines.New.Amount, s.Lines.Matched.Amount, s.Lines.Resolved.Amount, s.Lines.End.Amount
	rec.OpenBreaks, rec.OpenBreaksAmount, rec.OpenBreaksDigest, rec.Corrections = s.OpenBreaks.N, s.OpenBreaks.Amount, s.OpenBreaksDigest, s.Corrections
	return rec, sign(r.cfg.Keys, rec)
}

// sign signs the record of a close.
func sign(keys *secret.Keys, rec *record.Close) error {
	of, err := journal.CloseOf(rec, 0, 0)
	if err != nil {
		return fmt.Errorf("signing a close: %w", err)
	}
	signature, keyID, err := keys.SignDetached(journal.LabelCloses, []byte(of.Statement()))
	if err != nil {
		return fmt.Errorf("signing a close: %w", err)
	}
	rec.Signature, rec.SignedWith = base64.StdEncoding.EncodeToString(signature), keyID
	return nil
}

// closeID derives from the account, the days and the case.
func closeID(a approved) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{a.key.AgencyID, registry.Mode(a.key.Live), a.key.Code, a.from, a.to, a.caseID}, "|")))
	return "cls_" + hex.EncodeToString(sum[:16])
}
