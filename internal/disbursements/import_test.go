package disbursements_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
	processor "quittance/processors/disbursement"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/servers"
)

// deaf asks the processor, and loses the answers to commands of a kind.
type deaf struct {
	i    *payouts.Installation
	lose func(disbursement.Action) bool
	// sends is false if the commands do not even arrive.
	sends bool
}

func (d deaf) Ask(_ context.Context, cmd disbursement.Command) (disbursement.Answer, error) {
	lost := d.lose(cmd.Do)
	if lost && !d.sends {
		return disbursement.Answer{}, commands.ErrUnavailable
	}
	a := d.i.Ask(processor.SenderOperator, cmd.Batch, cmd.Do)
	if lost {
		return disbursement.Answer{}, commands.ErrUnavailable
	}
	return a, nil
}

const file = "line_ref,name,amount,currency,payment_mode,msisdn\na,Ngoma,1500,XAF,mobile_money,06 600 00 01\n"

// An import whose answers are lost ends its batch, or says that it may be sealed. Its batch_ref is free again, and nothing is
// called failed that people can approve.
func TestImportsWithoutAnswers(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	i.Process()
	i.Agency()
	pays, err := mtn.Registration.Disburser.New(connector.Config{Now: i.Now})
	if err != nil {
		t.Fatal(err)
	}
	_, pool := servers.Database(t)
	store, err := personal.New(personal.Config{Pool: pool, Keys: i.Keys, Now: i.Now})
	if err != nil {
		t.Fatal(err)
	}
	payees, err := disbursements.NewPayees(pool, i.Keys)
	if err != nil {
		t.Fatal(err)
	}
	account := disbursements.Account{Account: lines.Account{Code: "mtn", Currency: "XAF", Modes: []string{"mobile_money"}, Phone: pays.Payee, Country: "242"}, Fingerprint: "f", PerSecond: 10}
	run := func(ref string, asker disbursements.Asker) (disbursement.Batch, error) {
		importer := &disbursements.Importer{
			Processor: asker, Personal: store, Batches: disbursements.NewStore(pool, i.Codec), Payees: payees, Partition: i.Topology.Partition, Now: i.Now,
			IDs:      disbursement.NewIDs(func(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }),
			Accounts: func(string, bool) ([]disbursements.Account, int64) { return []disbursements.Account{account}, 1 },
		}
		made, err := importer.Import(t.Context(), disbursements.Import{
			TenantID: payroll.Tenant, BatchRef: ref, Date: i.Now().Add(time.Hour).Format(time.DateOnly), Currency: "XAF", Maker: "ama", Scope: disbursement.ScopeAgency,
			File: strings.NewReader(file), Size: int64(len(file)),
		})
		return made.Batch, err
	}
	kind := func(want disbursement.Action) func(disbursement.Action) bool {
		return func(do disbursement.Action) bool {
			switch want.(type) {
			case disbursement.Open:
				_, ok := do.(disbursement.Open)
				return ok
			case disbursement.AddLines:
				_, ok := do.(disbursement.AddLines)
				return ok
			}
			_, ok := do.(disbursement.Seal)
			return ok
		}
	}
	for _, lost := range []disbursement.Action{disbursement.Open{}, disbursement.AddLines{}} {
		for _, sends := range []bool{true, false} {
			if _, err := run("salaries", deaf{i, kind(lost), sends}); !errors.Is(err, commands.ErrUnavailable) || errors.Is(err, disbursements.ErrMaybeSealed) {
				t.Errorf("%T lost (arrives: %t): %v", lost, sends, err)
			}
		}
	}
	_, err = run("salaries", deaf{i, kind(disbursement.Seal{}), true})
	if !errors.Is(err, disbursements.ErrMaybeSealed) || !strings.Contains(err.Error(), "dsb_") {
		t.Errorf("a seal without an answer: %v", err)
	}
	// It is sealed: its references are taken.
	refused := (*disbursements.RefusedError)(nil)
	if _, err := run("salaries", deaf{i, func(disbursement.Action) bool { return false }, true}); !errors.As(err, &refused) || refused.Code != disbursement.CodeRefLive {
		t.Errorf("the same reference again: %v", err)
	}
}
