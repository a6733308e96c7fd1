package linear_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"quittance/dev/payday"
	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/test/harness"
	"quittance/test/servers"
)

// decision is the kind of a command about a batch.
type decision string

const (
	decideApprove decision = "approve"
	decideReject  decision = "reject"
	decideRecall  decision = "recall"
	decideRelease decision = "release"
	decideHold    decision = "hold"
	decideLift    decision = "lift"
)

// ordered is a command about a batch. holds is the number of holds that is signed, of a release or a lift.
type ordered struct {
	do    decision
	holds int
}

// told is the answer to a command, with the batch after it. An answer that is not definite was never seen.
type told struct {
	definite bool
	code     disbursement.Code
	after    batchState
}

// batchState is what people see of a batch that needs one approval and whose lines nobody pays.
type batchState struct {
	status disbursement.Status
	held   bool
	holds  int
	// approved is kept when the batch has ended: an approval that is sent again was carried out before.
	approved bool
}

// decide is the model of a batch if each command takes effect at one moment:
//
//	approve     carried out once. Before, only a sealed batch is approved: it is approved
//	reject      a sealed or approved batch is rejected; a rejected one stays so
//	recall      a sealed or approved batch is recalled; a recalled one stays so
//	release(n)  an approved batch that is not held, and was held n times, pays; one that pays goes on
//	hold        a sealed, approved or paying batch is held, once more; a held one stays so
//	lift(n)     the hold of a batch that was held n times ends
func (s batchState) decide(q ordered) (disbursement.Code, batchState) {
	waits := s.status == disbursement.StatusSealed || s.status == disbursement.StatusApproved
	switch q.do {
	case decideApprove:
		switch {
		case s.approved:
		case s.status != disbursement.StatusSealed:
			return disbursement.CodeStatus, s
		default:
			s.status, s.approved = disbursement.StatusApproved, true
		}
	case decideReject, decideRecall:
		to := disbursement.StatusRejected
		if q.do == decideRecall {
			to = disbursement.StatusRecalled
		}
		if s.status != to && !waits {
			return disbursement.CodeStatus, s
		}
		s.status = to
	case decideRelease:
		switch {
		case s.status == disbursement.StatusReleasing:
		case s.status != disbursement.StatusApproved:
			return disbursement.CodeStatus, s
		case s.held:
			return disbursement.CodeHeld, s
		case q.holds != s.holds:
			return disbursement.CodeNotSigned, s
		default:
			s.status = disbursement.StatusReleasing
		}
	case decideHold:
		switch {
		case s.held:
		case !waits && s.status != disbursement.StatusReleasing:
			return disbursement.CodeStatus, s
		default:
			s.held, s.holds = true, s.holds+1
		}
	case decideLift:
		switch {
		case !s.held:
			return disbursement.CodeNotHeld, s
		case q.holds != s.holds:
			return disbursement.CodeNotSigned, s
		}
		s.held = false
	}
	return disbursement.CodeOK, s
}

// batchModel explains answers by batchState.decide.
func batchModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return batchState{status: disbursement.StatusSealed} },
		Step: func(state, input, output any) (bool, any) {
			code, after := state.(batchState).decide(input.(ordered))
			answer := output.(told)
			seen := after
			seen.approved = answer.after.approved // no answer tells it
			return !answer.definite || answer.code == code && answer.after == seen, after
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v: %+v", input, output) },
	}
}

// The model rejects a history in which a decision is lost, and one in which two people have decided differently.
func TestBatchModelRejects(t *testing.T) {
	t.Parallel()
	sealed, approved := disbursement.StatusSealed, disbursement.StatusApproved
	ok := func(do decision, holds int, after batchState) porcupine.Operation {
		return porcupine.Operation{Input: ordered{do, holds}, Output: told{true, disbursement.CodeOK, after}}
	}
	for name, c := range map[string]struct {
		want bool
		all  []porcupine.Operation
	}{
		"in turn":                 {true, []porcupine.Operation{ok(decideApprove, 0, batchState{status: approved}), ok(decideHold, 0, batchState{status: approved, held: true, holds: 1}), ok(decideLift, 1, batchState{status: approved, holds: 1}), ok(decideRelease, 1, batchState{status: disbursement.StatusReleasing, holds: 1})}},
		"a lost approval":         {false, []porcupine.Operation{ok(decideApprove, 0, batchState{status: approved}), ok(decideHold, 0, batchState{status: sealed, held: true, holds: 1})}},
		"released while held":     {false, []porcupine.Operation{ok(decideApprove, 0, batchState{status: approved}), ok(decideHold, 0, batchState{status: approved, held: true, holds: 1}), ok(decideRelease, 1, batchState{status: disbursement.StatusReleasing, held: true, holds: 1})}},
		"released by an old hold": {false, []porcupine.Operation{ok(decideApprove, 0, batchState{status: approved}), ok(decideHold, 0, batchState{status: approved, held: true, holds: 1}), ok(decideLift, 1, batchState{status: approved, holds: 1}), ok(decideRelease, 0, batchState{status: disbursement.StatusReleasing, holds: 1})}},
		"recalled and rejected":   {false, []porcupine.Operation{ok(decideRecall, 0, batchState{status: disbursement.StatusRecalled}), ok(decideReject, 0, batchState{status: disbursement.StatusRejected})}},
	} {
		for i := range c.all {
			c.all[i].Call, c.all[i].Return = int64(2*i), int64(2*i+1)
		}
		if got := porcupine.CheckOperations(batchModel(), c.all); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

const (
	// deciders send commands about a batch at the same time, each so many.
	deciders, decisionsOfEach = 4, 12
	// batchesAtOnce is how many agencies have a history at the same time.
	batchesAtOnce = 4
)

// People approve, reject, recall, hold and release the same batch at the same time, and one of two processors is killed in
// each round. The model must explain all answers. QUITTANCE_LINEARIZABILITY=full makes more rounds.
func TestLinearBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and kills parts of it")
	}
	t.Parallel()
	rounds := 2
	if os.Getenv("QUITTANCE_LINEARIZABILITY") == "full" {
		rounds = 50
	}
	s := harness.NewStack(t, servers.Dir(t), harness.Shape{Registry: (*harness.Stack).Applications, Batches: 2})
	office, agencies := openOffice(t, s)
	dir, seen, unknown, kills := t.TempDir(), map[disbursement.Code]int{}, 0, 0
	reached := map[disbursement.Status]int{}
	for round := range rounds {
		batches := make([]payday.Batch, len(agencies))
		for i, a := range agencies {
			file := filepath.Join(dir, a.Slug+".csv")
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			err = payday.WriteCSV(f, []payday.Line{{Ref: fmt.Sprintf("line-%d", round), Amount: 5000, Mode: "mtn", Phone: "06 600 00 01"}})
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			if batches[i], _, err = office.Import(t.Context(), a, fmt.Sprintf("batch-%d", round), file); err != nil {
				t.Fatal(err)
			}
		}
		histories := make([][]porcupine.Operation, len(batches))
		var all sync.WaitGroup
		for i, b := range batches {
			all.Go(func() { histories[i] = decideAtOnce(t, office, b) })
		}
		victim := s.Fleet[round%len(s.Fleet)]
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		victim.Kill()
		kills++
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		for i, h := range histories {
			if result := porcupine.CheckOperationsTimeout(batchModel(), h, checkPatience); result != porcupine.Ok {
				t.Errorf("the history of %s is %s: %v", batches[i].ID, result, h)
			}
			for _, o := range h {
				if a := o.Output.(told); a.definite {
					seen[a.code]++
					reached[a.after.status]++
				} else {
					unknown++
				}
			}
		}
	}
	t.Logf("histories=%d answers=%v batches=%v unknown=%d kills=%d", rounds*len(agencies), seen, reached, unknown, kills)
	for _, code := range []disbursement.Code{disbursement.CodeOK, disbursement.CodeStatus, disbursement.CodeNotSigned, disbursement.CodeNotHeld} {
		if seen[code] == 0 {
			t.Errorf("no answer is %s", code)
		}
	}
}

// openOffice founds agencies of a stack.
func openOffice(t *testing.T, s *harness.Stack) (*payday.Payday, []*payday.Agency) {
	t.Helper()
	ctx := t.Context()
	w, err := harness.OpenTopics(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	office, agencies := harness.Office(t, s, w.Codec, batchesAtOnce)
	if err := office.Found(ctx, agencies...); err != nil {
		t.Fatal(err)
	}
	return office, agencies
}

// decideAtOnce has people send commands about a batch, and returns what was answered.
func decideAtOnce(t *testing.T, office *payday.Payday, b payday.Batch) (history []porcupine.Operation) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	holds := 0 // as the last answer tells it
	begun := time.Now()
	now := func() int64 { return time.Since(begun).Nanoseconds() }
	for client := range deciders {
		all.Go(func() {
			for n := range decisionsOfEach {
				mu.Lock()
				q := ordered{do: drawn(n), holds: holds}
				mu.Unlock()
				if rand.IntN(8) == 0 {
					q.holds = max(0, q.holds-1) // an old signature
				}
				action, err := actionOf(b, q)
				if err != nil {
					t.Error(err)
					return
				}
				called := now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				answer, err := office.Once(ctx, b, action)
				cancel()
				o := porcupine.Operation{ClientId: client, Input: q, Call: called, Return: now(), Output: told{}}
				switch {
				case err == nil && answer.Batch != nil:
					x := answer.Batch
					o.Output = told{definite: true, code: answer.Code(), after: batchState{status: x.Status, held: x.Held(), holds: x.Holds}}
				case err == nil:
					t.Errorf("%v is answered with %s and without the batch", q, answer.Code())
				case !errors.Is(err, commands.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
				mu.Lock()
				history = append(history, o)
				if a := o.Output.(told); a.definite {
					holds = a.after.holds
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	// What has no answer may be carried out at any later time.
	end := now()
	for i := range history {
		if !history[i].Output.(told).definite {
			history[i].Return = end
		}
	}
	return history
}

// drawn is the decision of a client. Decisions that end a batch are rare at first.
func drawn(n int) decision {
	often := []decision{decideApprove, decideHold, decideLift, decideRelease, decideHold, decideLift}
	if n > decisionsOfEach/2 && rand.IntN(4) == 0 {
		return []decision{decideReject, decideRecall}[rand.IntN(2)]
	}
	if rand.IntN(40) == 0 {
		return []decision{decideReject, decideRecall}[rand.IntN(2)]
	}
	return often[rand.IntN(len(often))]
}

func actionOf(b payday.Batch, q ordered) (disbursement.Action, error) {
	switch q.do {
	case decideApprove:
		return b.Approval()
	case decideReject:
		return b.Rejection()
	case decideRecall:
		return b.Recall(), nil
	case decideRelease:
		return b.Start(q.holds)
	case decideHold:
		return b.Hold(), nil
	case decideLift:
		return b.Lift(q.holds)
	}
	return nil, fmt.Errorf("no action %q", q.do)
}
