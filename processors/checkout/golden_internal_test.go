package checkout

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/processors/entry"
)

// everyKind is a decision that writes one entry of each kind.
func everyKind() checkout.Decision {
	at := func(hours int) time.Time {
		return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC).Add(time.Duration(hours) * time.Hour)
	}
	return checkout.Decision{
		Sessions: map[string]checkout.Session{"chs_1": {
			ID: "chs_1", ApplicationID: "app", TenantID: "agency", Live: true, OrderID: "order", Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted,
			ServiceCode: "svc", ServiceLabel: "Service", Customer: &checkout.Customer{Name: "Adama", Email: "adama@example.org", Phone: "+242066000001"},
			Metadata: map[string]string{"k": "v"}, SuccessURL: "https://shop.example.org/s", CancelURL: "https://shop.example.org/c",
			PaymentRef: "123456", NoticeID: "notice", NoticeRef: "AV2026", TransactionID: "tx", ClientSecretHash: []byte("hash"), ClientSecretSealed: []byte("sealed"),
			CreatedAt: at(0), ExpiresAt: at(1), EndedAt: at(1), Status: checkout.StatusCompleted, Sequence: 3, Orphans: []string{"elsewhere"}, ERP: true,
			Items:        []checkout.Item{{ERPDueRef: "due", Label: "Tax", Amount: 5000, TransactionID: "tx", Confirmation: checkout.Confirmation{Status: checkout.ConfirmationAwaited, Since: at(0)}}},
			Offers:       []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}},
			Collection:   &checkout.Collection{ID: "c", OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Status: checkout.CollectionPending, Amount: 5075, Fee: 75, Currency: "XAF", PayerMasked: "24206•••001", RequestedAt: at(0), NotAfter: at(1), WindowEndsAt: at(2), Enquiries: 2, NextEnquiryAt: at(1), Account: "acc"},
			Refusals:     []checkout.Refusal{{CollectionID: "before", FailureCode: checkout.FailureRejected, At: at(0)}},
			Cases:        []checkout.Case{{Case: casework.Case{ID: "case", Kind: checkout.CaseMismatch, Amount: 6000, Currency: "XAF", OpenedAt: at(0), Proposed: 1}, CollectionID: "elsewhere"}},
			Cashin:       &checkout.Cashin{Kind: checkout.CashinInit, PaymentID: 7, Number: "N-7", Items: []byte("[]")},
			Confirmation: checkout.Confirmation{Status: checkout.ConfirmationAwaited, Since: at(0), Again: 1},
		}},
		Orders: map[checkout.OrderKey]checkout.Order{{ApplicationID: "app", Live: true, OrderID: "order\x00with a zero byte"}: {
			OpenSessionID: "chs_1", Undecided: []string{"chs_2"}, Late: []string{"chs_3"}, Cash: []string{"c"},
		}},
		Idempotency: map[checkout.IdempotencyKey]checkout.Idempotency{{ApplicationID: "app", Key: "key"}: {
			BodyHash: []byte("body"), Code: checkout.CodeValidationFailed, Faults: []checkout.Fault{{Code: checkout.CodeValidationFailed, Field: "amount", Rule: "min", Message: "m"}}, ForgetAt: at(720),
		}},
		Quotas:     map[string]checkout.Quota{"app": {{Minute: 29_000_000, Count: 3}, {Minute: 28_999_999, Count: 9}}},
		Tokens:     map[string]checkout.Token{"token hash": {SessionID: "chs_1", ExpiresAt: at(1), ConsumedAt: at(0), ForgetAt: at(24)}},
		TokenLists: map[string]checkout.TokenList{"chs_1": {Hashes: [][]byte{[]byte("token hash")}, ForgetAt: at(24)}},
		Tills:      map[checkout.TillKey]checkout.Till{{AgencyID: "agency", Live: true, Clerk: "c01"}: {Day: "2026-11-22", Taken: 15_000}},
		Months:     map[checkout.MonthKey]int{{ApplicationID: "app", Month: "2026-11"}: 42},
		Numbers:    map[checkout.NumberKey]string{{ApplicationID: "app", Live: true, Number: "N-7"}: "chs_1"},
		Externals: map[checkout.ExternalKey]checkout.External{{ApplicationID: "app", Live: true, ExternalNumber: "ext"}: {
			InitSessionID: "chs_1", Open: 1, Paid: 2, Undecided: 3, Late: 4, Ask: []string{"chs_2"},
		}},
		Claims: map[checkout.ClaimKey]checkout.Claim{{TenantID: "agency", Live: true, ERPDueRef: "due"}: {
			SessionID: "chs_1", TransactionID: "tx", AcceptedAt: at(2), Left: -1,
		}},
	}
}

// The keys, the values and the deadlines of entries never change: state topics and local stores
// of installations have them.
func TestGoldenEntries(t *testing.T) {
	t.Parallel()
	tx := &entries{state: map[string][]byte{}}
	state := entry.NewState(tx, newProcessor(t).codec)
	write(state, everyKind())
	if err := state.Err(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, put := range tx.puts {
		deadline := "never"
		if !put.deadline.IsZero() {
			deadline = put.deadline.UTC().Format(time.RFC3339)
		}
		lines = append(lines, fmt.Sprintf("%q %s %x\n", put.key, deadline, put.value[5:])) // without the header, which has the registry's id of the schema
	}
	slices.Sort(lines)
	golden, err := os.ReadFile(filepath.Join("testdata", "entries.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines, ""); got != string(golden) {
		t.Errorf("entries are\n%s\nwant\n%s", got, golden)
	}
	v, want := view{state}, everyKind()
	readBack(t, "session", only(v.Session), want.Sessions)
	readBack(t, "order", v.Order, want.Orders)
	readBack(t, "idempotency", only(v.Idempotency), want.Idempotency)
	readBack(t, "quota", v.Quota, want.Quotas)
	readBack(t, "token", only(v.Token), want.Tokens)
	readBack(t, "tokens", v.Tokens, want.TokenLists)
	readBack(t, "till", v.Till, want.Tills)
	readBack(t, "month", v.Month, want.Months)
	readBack(t, "number", v.Numbered, want.Numbers)
	readBack(t, "external", v.External, want.Externals)
	readBack(t, "claim", v.Claim, want.Claims)
}

// readBack compares what a view reads with what was written.
func readBack[K comparable, V any](t *testing.T, kind string, read func(K) V, want map[K]V) {
	t.Helper()
	for k, v := range want {
		if got := read(k); !reflect.DeepEqual(got, v) {
			t.Errorf("%s %v is\n%+v\nwant\n%+v", kind, k, got, v)
		}
	}
}

func only[K, V any](read func(K) (V, bool)) func(K) V {
	return func(k K) V {
		v, _ := read(k)
		return v
	}
}
