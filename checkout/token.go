package checkout

import (
	"crypto/subtle"
	"slices"
	"time"
)

// CompletionTokenLifetime is the time for which a completion token is valid.
const CompletionTokenLifetime = 10 * time.Minute

// secretGrace is the time after a session's end for which its client_secret stays valid,
// if that is later than the session's expiry (docs/design/decisions.md § 4).
const secretGrace = CompletionTokenLifetime

// OpensWith reports whether hash is the SHA-256 of the session's client_secret and the
// secret is valid at that time. The secret of a session that has not ended is always
// valid, also past its expiry: the session then waits for a collection, or its end is not
// decided yet.
func (s Session) OpensWith(secretHash []byte, at time.Time) bool {
	accepted := s.ExpiresAt
	if grace := s.EndedAt.Add(secretGrace); grace.After(accepted) {
		accepted = grace
	}
	return len(s.ClientSecretHash) > 0 && subtle.ConstantTimeCompare(s.ClientSecretHash, secretHash) == 1 && (!s.Ended() || at.Before(accepted))
}

func (d *decider) issueToken(do IssueToken) Answer {
	s, ok := d.visible()
	if !ok || len(s.ClientSecretHash) == 0 {
		return Answer{Code: CodeSessionNotFound}
	}
	if !s.OpensWith(do.ClientSecretHash, d.cmd.At) {
		return Answer{Code: CodeSecretRefused}
	}
	s = d.expire(s)
	if !s.Paid() {
		return Answer{Code: CodeNotCompleted, Session: &s}
	}
	hash := string(do.Hash)
	if known, ok := d.view.Token(hash); ok && known.SessionID == s.ID {
		return Answer{Code: CodeOK, Session: &s, Replayed: true, TokenExpiresAt: known.ExpiresAt}
	}
	t := Token{SessionID: s.ID, ExpiresAt: d.cmd.At.Add(do.Lifetime), ForgetAt: d.cmd.At.Add(TokenRetention)}
	put(&d.out.Tokens, hash, t)
	if d.listToken(s.ID, do.Hash, t) {
		// Tokens beyond MaxTokens leave no trace in the journal, which keeps every event.
		s = d.emit(s, EventTokenIssued, change{}, nil)
	}
	return Answer{Code: CodeOK, Session: &s, TokenExpiresAt: t.ExpiresAt}
}

// listToken adds a token to the list of its session. fresh is false when it replaces the
// oldest.
func (d *decider) listToken(sessionID string, hash []byte, t Token) (fresh bool) {
	known := d.view.Tokens(sessionID)
	l := TokenList{Hashes: append(slices.Clone(known.Hashes), hash), ForgetAt: t.ForgetAt}
	if known.ForgetAt.After(l.ForgetAt) {
		l.ForgetAt = known.ForgetAt // the sender's clock is behind
	}
	fresh = true
	for len(l.Hashes) > MaxTokens {
		oldest := string(l.Hashes[0])
		l.Hashes, fresh = l.Hashes[1:], false
		if old, ok := d.view.Token(oldest); ok && old.SessionID == sessionID {
			d.out.ForgottenTokens = append(d.out.ForgottenTokens, oldest)
		}
	}
	put(&d.out.TokenLists, sessionID, l)
	return fresh
}

func (d *decider) consumeToken(do ConsumeToken) Answer {
	t, ok := d.view.Token(string(do.Hash))
	if !ok {
		return Answer{Code: CodeTokenNotFound}
	}
	d.cmd.SessionID = t.SessionID
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeTokenNotFound} // the token of another application or mode
	}
	if do.OrderID != "" && do.OrderID != s.OrderID {
		return Answer{Code: CodeTokenNotFound} // a visitor presents the token of another payment
	}
	alive := d.cmd.At.Before(t.ExpiresAt) && s.ReversedAt.IsZero()
	switch {
	case alive && t.ConsumedAt.IsZero():
		t.ConsumedAt = d.cmd.At
		put(&d.out.Tokens, string(do.Hash), t)
		s = d.emit(s, EventTokenConsumed, change{}, nil)
		return Answer{Code: CodeOK, Session: &s, TokenExpiresAt: t.ExpiresAt}
	case alive:
		return Answer{Code: CodeOK, Session: &s, Replayed: true, TokenExpiresAt: t.ExpiresAt}
	case t.ConsumedAt.IsZero():
		return Answer{Code: CodeTokenExpired}
	}
	return Answer{Code: CodeTokenConsumed}
}
