package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/internal/commands"
	"quittance/internal/personal"
	"quittance/internal/sessions"
)

const erasePlan = `This erases the contact data and the payers' numbers of %s, for ever: Kafka, its copies and the local stores keep what nobody can open.
Sessions that have not ended are left out. It may be interrupted and given again.`

// staysAfterErasure says what erase leaves, in the words of the data-protection officer's
// page.
var staysAfterErasure = []string{
	"amounts, fees, dates, statuses and failure codes",
	"references: order_id, payment_ref, notice and transaction ids, the operator's reference, the agency's metadata",
	"masked numbers such as +242 06 ••• •• 01 in the journal, in checkout.events and in confirmations to the ERP",
	"operator cases and the audit table, which hold no contact data",
}

// erase erases the personal data of ended sessions.
func erase() Command {
	var session, phone, reason string
	var yes bool
	return Command{
		Use: "erase", Short: "Erase contact data and payers' numbers of ended sessions", JSON: "the sessions and what stays",
		Examples: []string{"erase --session chs_0000000000000000000000000000", `erase --phone "+242 06 600 00 01" --reason "request 2026-117"`},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&session, "session", "", "the session, a chs_ id")
			f.StringVar(&phone, "phone", "", "all sessions with this phone number, of the contact data or of the payer; QUITTANCE_PHONE keeps it out of the shell's history")
			f.StringVar(&reason, "reason", "", "recorded in the audit table, for example the number of the request; no personal data")
			yesFlag(f, &yes)
		},
		Check: func(*Meta) error {
			switch {
			case (session == "") == (phone == ""):
				return usage("say what to erase: either --session with a chs_ id, or --phone with a number")
			case phone != "" && personal.Canonical(phone) == "":
				return usage("--phone: must be a phone number, such as \"+242 06 600 00 01\"")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			store, err := personal.New(personal.Config{Pool: m.pool, Keys: keys, Now: func() time.Time { return m.now }})
			if err != nil {
				return err
			}
			q := personal.Request{Actor: operator(), At: m.now, By: "session", Reason: reason}
			ids, what, incomplete := []string{session}, "session "+session, error(nil)
			if phone != "" {
				q.By = "phone"
				if ids, incomplete = store.Find(ctx, phone); incomplete != nil && !errors.Is(incomplete, personal.ErrLocked) {
					return incomplete
				}
				what = fmt.Sprintf("%d sessions with this number", len(ids))
			}
			if len(ids) == 0 {
				yes = true // there is nothing to agree to
			}
			if err := m.agree(yes, fmt.Sprintf(erasePlan, what)); err != nil {
				return err
			}
			return errors.Join(m.eraseAll(ctx, store, ids, q), incomplete)
		},
	}
}

// eraseAll erases sessions and prints what was done. Sessions that are not erased are an
// error.
func (m *Meta) eraseAll(ctx context.Context, store *personal.Store, ids []string, q personal.Request) error {
	rows := make([][]any, 0, len(ids))
	list := make([]object, 0, len(ids))
	count := map[personal.Result]int{}
	err := m.withProcessor(ctx, func(ctx context.Context, processor *commands.Checkout, _ *sessions.Reader) error {
		for _, id := range ids {
			result, err := store.Erase(ctx, processor, id, q)
			if err != nil {
				return err
			}
			count[result]++
			list = append(list, object{"session_id", id, "result", string(result)})
			rows = append(rows, []any{id, resultWords[result]})
		}
		return nil
	})
	if err == nil && len(ids) == 1 && count[personal.ResultUnknown] > 0 {
		return errors.New("no session has this id, and no data are kept for it; ids look like chs_…")
	}
	shown := m.show(object{"sessions", list, "stays", staysAfterErasure}, func(p *page) {
		p.table("No session has this number.", "SESSION,RESULT", rows)
		p.say("What stays, because accounts must be kept:\n  %s", strings.Join(staysAfterErasure, "\n  "))
	})
	switch {
	case errors.Is(err, commands.ErrUnavailable):
		err = fmt.Errorf("after %d of %d sessions the processor did not answer in time; check that it runs, then give the command again", len(list), len(ids))
	case err != nil:
		err = fmt.Errorf("after %d of %d sessions: %w; give the command again", len(list), len(ids), err)
	case count[personal.ResultOpen] > 0:
		err = fmt.Errorf("%d sessions have not ended and are not erased; give the command again after their end", count[personal.ResultOpen])
	case count[personal.ResultUnknown] > 0:
		err = fmt.Errorf("%d sessions are not known yet, because they are being created; give the command again after an hour", count[personal.ResultUnknown])
	}
	return errors.Join(shown, err)
}

var resultWords = map[personal.Result]string{
	personal.ResultErased:  "erased",
	personal.ResultNothing: "nothing left to erase",
	personal.ResultOpen:    "open: not erased",
	personal.ResultUnknown: "not known yet: not erased",
}
