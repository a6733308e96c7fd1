package checkout

import (
	"time"

	"quittance/checkout"
	"quittance/processors/entry"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// kinds are the kinds of entries in checkout.state. Paid orders and the numbers of payments are
// kept for ever; of quotas, tills and months an application or a clerk has one entry each.
var kinds = entry.NewKinds(&sessions, &orders, &idempotency, &quotas, &tokens, &tokenLists, &tills, &months, &numbers, &externals, &claims, &refusingERPs)

var sessions = entry.Entry[string, checkout.Session]{
	Letter: 's',
	Key:    entry.Text,
	Record: entry.Of(mapping.FromSession, mapping.ToSession),
	WakeAt: func(s checkout.Session) time.Time { at, _ := s.Deadline(); return at },
}

var orders = entry.Entry[checkout.OrderKey, checkout.Order]{
	Letter: 'o',
	Key:    func(k checkout.OrderKey) string { return entry.Parts(k.ApplicationID, modeOf(k.Live), k.OrderID) },
	Record: entry.Of(mapping.FromOrder, mapping.ToOrder),
}

var idempotency = entry.Entry[checkout.IdempotencyKey, checkout.Idempotency]{
	Letter:   'i',
	Key:      func(k checkout.IdempotencyKey) string { return entry.Parts(k.ApplicationID, modeOf(k.Live), k.Key) },
	Record:   entry.Of(mapping.FromIdempotency, mapping.ToIdempotency),
	ForgetAt: func(i checkout.Idempotency) time.Time { return i.ForgetAt },
}

// quotas by application.
var quotas = entry.Entry[string, checkout.Quota]{
	Letter: 'q',
	Key:    entry.Text,
	Record: entry.Of(
		func(q checkout.Quota) record.Quota {
			return record.Quota{
				Minute: q[0].Minute, Count: int32(q[0].Count),
				OtherMinute: q[1].Minute, OtherCount: int32(q[1].Count),
			}
		},
		func(r *record.Quota) checkout.Quota {
			return checkout.Quota{{Minute: r.Minute, Count: int(r.Count)}, {Minute: r.OtherMinute, Count: int(r.OtherCount)}}
		},
	),
}

// tokens by hash.
var tokens = entry.Entry[string, checkout.Token]{
	Letter:   't',
	Key:      entry.Text,
	Record:   entry.Of(mapping.FromToken, mapping.ToToken),
	ForgetAt: func(t checkout.Token) time.Time { return t.ForgetAt },
}

// tokenLists by session.
var tokenLists = entry.Entry[string, checkout.TokenList]{
	Letter:   'l',
	Key:      entry.Text,
	Record:   entry.Of(mapping.FromTokenList, mapping.ToTokenList),
	ForgetAt: func(l checkout.TokenList) time.Time { return l.ForgetAt },
}

var tills = entry.Entry[checkout.TillKey, checkout.Till]{
	Letter: 'c',
	Key:    func(k checkout.TillKey) string { return entry.Parts(k.AgencyID, modeOf(k.Live), k.Clerk) },
	Record: entry.Of(mapping.FromTill, mapping.ToTill),
}

// months have the last number of a month.
var months = entry.Entry[checkout.MonthKey, int]{
	Letter: 'm',
	Key:    func(k checkout.MonthKey) string { return entry.Parts(k.ApplicationID, modeOf(k.Live), k.Month) },
	Record: entry.Of(
		func(last int) record.MonthCounter { return record.MonthCounter{Last: int32(last)} },
		func(r *record.MonthCounter) int { return int(r.Last) },
	),
}

// numbers have the session of a number.
var numbers = entry.Entry[checkout.NumberKey, string]{
	Letter: 'n',
	Key:    func(k checkout.NumberKey) string { return entry.Parts(k.ApplicationID, modeOf(k.Live), k.Number) },
	Record: entry.Of(
		func(id string) record.NumberedPayment { return record.NumberedPayment{SessionID: id} },
		func(r *record.NumberedPayment) string { return r.SessionID },
	),
}

var externals = entry.Entry[checkout.ExternalKey, checkout.External]{
	Letter: 'e',
	Key: func(k checkout.ExternalKey) string {
		return entry.Parts(k.ApplicationID, modeOf(k.Live), k.ExternalNumber)
	},
	Record: entry.Of(mapping.FromExternal, mapping.ToExternal),
}

var claims = entry.Entry[checkout.ClaimKey, checkout.Claim]{
	Letter:   'd',
	Key:      func(k checkout.ClaimKey) string { return entry.Parts(k.TenantID, modeOf(k.Live), k.ERPDueRef) },
	Record:   entry.Of(mapping.FromClaim, mapping.ToClaim),
	Empty:    checkout.Claim.Empty,
	ForgetAt: checkout.Claim.ForgetAt,
}

var refusingERPs = entry.Entry[checkout.ERPKey, checkout.RefusingERP]{
	Letter:   'r',
	Key:      func(k checkout.ERPKey) string { return entry.Parts(k.TenantID, modeOf(k.Live)) },
	Record:   entry.Of(mapping.FromRefusingERP, mapping.ToRefusingERP),
	ForgetAt: checkout.RefusingERP.ForgetAt,
}

func modeOf(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// write writes the entries that a decision changes.
func write(s *entry.State, d checkout.Decision) {
	sessions.Put(s, d.Sessions)
	orders.Put(s, d.Orders)
	idempotency.Put(s, d.Idempotency)
	quotas.Put(s, d.Quotas)
	tokens.Put(s, d.Tokens)
	tokenLists.Put(s, d.TokenLists)
	tills.Put(s, d.Tills)
	months.Put(s, d.Months)
	numbers.Put(s, d.Numbers)
	claims.Put(s, d.Claims)
	refusingERPs.Put(s, d.RefusingERPs)
	externals.Put(s, d.Externals)
	tokens.Delete(s, d.ForgottenTokens...)
}

// view is the checkout.View of one partition's state. The caller drops the decision if the state
// has an error.
type view struct{ state *entry.State }

func (v view) Session(id string) (checkout.Session, bool) { return sessions.Get(v.state, id) }
func (v view) Order(k checkout.OrderKey) checkout.Order   { return orders.Value(v.state, k) }
func (v view) Quota(applicationID string) checkout.Quota  { return quotas.Value(v.state, applicationID) }
func (v view) Token(hash string) (checkout.Token, bool)   { return tokens.Get(v.state, hash) }
func (v view) Tokens(sessionID string) checkout.TokenList {
	return tokenLists.Value(v.state, sessionID)
}
func (v view) Till(k checkout.TillKey) checkout.Till { return tills.Value(v.state, k) }
func (v view) Month(k checkout.MonthKey) int         { return months.Value(v.state, k) }
func (v view) Numbered(k checkout.NumberKey) string  { return numbers.Value(v.state, k) }

func (v view) External(k checkout.ExternalKey) checkout.External { return externals.Value(v.state, k) }
func (v view) Claim(k checkout.ClaimKey) checkout.Claim          { return claims.Value(v.state, k) }

func (v view) RefusingERP(k checkout.ERPKey) checkout.RefusingERP {
	return refusingERPs.Value(v.state, k)
}

func (v view) Idempotency(k checkout.IdempotencyKey) (checkout.Idempotency, bool) {
	return idempotency.Get(v.state, k)
}
