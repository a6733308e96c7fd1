package checkout

import (
	"strings"

	"quittance/checkout"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// kind is the first byte of a state key: the kind of the entry.
type kind byte

// The kinds of entries in checkout.state. Never change one: existing entries use them.
const (
	kindSession     kind = 's'
	kindOrder       kind = 'o'
	kindIdempotency kind = 'i'
	kindQuota       kind = 'q'
	kindToken       kind = 't'
	kindTokenList   kind = 'l'
	kindTill        kind = 'c'
	kindMonth       kind = 'm'
	kindNumber      kind = 'n'
	kindExternal    kind = 'e'
	kindClaim       kind = 'd'
)

func kindOf(key []byte) kind {
	if len(key) == 0 {
		return 0
	}
	return kind(key[0])
}

// stateKey joins a kind and the parts of a key with zero bytes. Only the last part may
// contain a zero byte.
func stateKey(k kind, parts ...string) []byte {
	return append([]byte{byte(k), 0}, strings.Join(parts, "\x00")...)
}

func sessionKey(id string) []byte { return stateKey(kindSession, id) }
func sessionOf(key []byte) string { return string(key[2:]) }
func quotaKey(id string) []byte   { return stateKey(kindQuota, id) }
func tokenKey(hash string) []byte { return stateKey(kindToken, hash) }

func tokenListKey(sessionID string) []byte { return stateKey(kindTokenList, sessionID) }

func tillKey(k checkout.TillKey) []byte {
	return stateKey(kindTill, k.AgencyID, modeOf(k.Live), k.Clerk)
}

func monthKey(k checkout.MonthKey) []byte {
	return stateKey(kindMonth, k.ApplicationID, modeOf(k.Live), k.Month)
}

func numberKey(k checkout.NumberKey) []byte {
	return stateKey(kindNumber, k.ApplicationID, modeOf(k.Live), k.Number)
}

func externalKey(k checkout.ExternalKey) []byte {
	return stateKey(kindExternal, k.ApplicationID, modeOf(k.Live), k.ExternalNumber)
}

func claimKey(k checkout.ClaimKey) []byte {
	return stateKey(kindClaim, k.TenantID, modeOf(k.Live), k.ERPDueRef)
}

func orderKey(k checkout.OrderKey) []byte {
	return stateKey(kindOrder, k.ApplicationID, modeOf(k.Live), k.OrderID)
}

func idempotencyKey(k checkout.IdempotencyKey) []byte {
	return stateKey(kindIdempotency, k.ApplicationID, modeOf(k.Live), k.Key)
}

func modeOf(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// view is the checkout.View of one partition's state. It keeps the first error; the caller
// must then drop the decision.
type view struct {
	tx    transaction
	codec *schemas.Codec
	err   error
}

func (v *view) get(key []byte, r record.Record) bool {
	if v.err != nil {
		return false
	}
	b, err := v.tx.Get(key)
	if err == nil && b != nil {
		err = v.codec.Decode(b, r)
	}
	v.err = err
	return err == nil && b != nil
}

func (v *view) Session(id string) (checkout.Session, bool) {
	var r record.Session
	if !v.get(sessionKey(id), &r) {
		return checkout.Session{}, false
	}
	return mapping.ToSession(&r), true
}

func (v *view) Order(k checkout.OrderKey) checkout.Order {
	var r record.Order
	v.get(orderKey(k), &r)
	return checkout.Order(r)
}

func (v *view) Idempotency(k checkout.IdempotencyKey) (checkout.Idempotency, bool) {
	var r record.Idempotency
	if !v.get(idempotencyKey(k), &r) {
		return checkout.Idempotency{}, false
	}
	return checkout.Idempotency{
		BodyHash: r.BodyHash, Code: checkout.Code(r.Code), SessionID: r.SessionID, Faults: mapping.ToFaults(r.Faults), ForgetAt: r.ForgetAt,
	}, true
}

func (v *view) Quota(applicationID string) checkout.Quota {
	var r record.Quota
	v.get(quotaKey(applicationID), &r)
	return checkout.Quota{{Minute: r.Minute, Count: int(r.Count)}, {Minute: r.OtherMinute, Count: int(r.OtherCount)}}
}

func (v *view) Token(hash string) (checkout.Token, bool) {
	var r record.Token
	if !v.get(tokenKey(hash), &r) {
		return checkout.Token{}, false
	}
	return checkout.Token(r), true
}

func (v *view) Tokens(sessionID string) checkout.TokenList {
	var r record.TokenList
	v.get(tokenListKey(sessionID), &r)
	return checkout.TokenList(r)
}

func (v *view) Till(k checkout.TillKey) checkout.Till {
	var r record.Till
	v.get(tillKey(k), &r)
	return checkout.Till(r)
}

func (v *view) Month(k checkout.MonthKey) int {
	var r record.MonthCounter
	v.get(monthKey(k), &r)
	return int(r.Last)
}

func (v *view) Numbered(k checkout.NumberKey) string {
	var r record.NumberedPayment
	v.get(numberKey(k), &r)
	return r.SessionID
}

func (v *view) External(k checkout.ExternalKey) checkout.External {
	var r record.ExternalNumber
	v.get(externalKey(k), &r)
	return checkout.External{
		InitSessionID: r.InitSessionID, Open: int(r.Open), Paid: int(r.Paid), Undecided: int(r.Undecided), Late: int(r.Late), Ask: r.Ask,
	}
}

func (v *view) Claim(k checkout.ClaimKey) checkout.Claim {
	var r record.Claim
	if !v.get(claimKey(k), &r) {
		return checkout.Claim{}
	}
	return checkout.Claim(r)
}
