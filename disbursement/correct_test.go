package disbursement_test

import (
	"fmt"
	"testing"

	"quittance/disbursement"
	"quittance/test/payroll"
)

func adding(id string, lines ...disbursement.NewLine) disbursement.Command {
	return disbursement.Command{Batch: id, Do: disbursement.AddLines{ImportID: "i", Lines: lines}}
}

// corrected makes a chain: line a of batch b is refused, and a2 of batch c, which corrects it, is refused, too.
func corrected(t *testing.T) *world {
	t.Helper()
	w := one(t)
	w.word("b", enquired(disbursement.WordRefused))
	w.releasing("c", payroll.Line("a2", "mtn", "a", 5000))
	w.ticks()
	w.word("c", enquired(disbursement.WordRefused))
	return w
}

// The first line of a chain turns out to be paid. Its correction is cancelled. A correction of the correction would pay
// the payee twice, whether it is made before or after the word.
func TestChainOfCorrections(t *testing.T) {
	t.Parallel()
	again := payroll.Line("a3", "mtn", "a2", 5000)
	for _, decided := range []bool{false, true} {
		w := corrected(t)
		w.word("b", enquired(disbursement.WordPaid))
		w.ok(disbursement.Command{Batch: "c", Do: disbursement.Cancel{By: "ama"}})
		if decided {
			w.ok(w.settle("b", true, "ben", "cleo"))
		}
		w.ok(disbursement.Command{Batch: "d", Do: w.opening("d")})
		w.no(disbursement.CodeNotCorrected, adding("d", again))

		w = corrected(t)
		w.releasing("d", again)
		w.word("b", enquired(disbursement.WordPaid))
		if decided {
			w.ok(w.settle("b", true, "ben", "cleo"))
		}
		n := len(w.pays)
		w.ticks()
		w.want("d", disbursement.LineReady)
		if len(w.pays) != n || !w.batches["d"].Held() {
			t.Errorf("decided %v: %d requests, hold %+v", decided, len(w.pays)-n, w.batches["d"].Hold)
		}
	}
	w := corrected(t) // nobody is paid: the chain goes on
	w.releasing("d", again)
	w.ticks()
	w.want("d", disbursement.LineSent)
}

// A chain has an end, because each request looks at all of its lines.
func TestChainHasAnEnd(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", enquired(disbursement.WordRefused))
	last := "a"
	for i := range disbursement.MaxCorrections {
		id, ref := fmt.Sprint("c", i), fmt.Sprint("a-", i)
		w.releasing(id, payroll.Line(ref, "mtn", last, 5000))
		w.ticks()
		w.word(id, enquired(disbursement.WordRefused))
		last = ref
	}
	w.ok(disbursement.Command{Batch: "z", Do: w.opening("z")})
	w.no(disbursement.CodeNotCorrected, adding("z", payroll.Line("a-z", "mtn", last, 5000)))
}
