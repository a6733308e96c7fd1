package erase

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/citizens"
	"quittance/internal/commands"
	"quittance/internal/contact"
	"quittance/internal/disbursements"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/internal/sessions"
)

const erasePlan = `This erases %s, for ever: of it, Kafka, its copies and the local stores keep what nobody can open.
Sessions and batches that have not ended are left out. It may be interrupted and given again.`

// staysAfterErasure says what erase leaves, in the words of the data-protection officer's
// page.
var staysAfterErasure = []string{
	"amounts, fees, dates, statuses and failure codes",
	"references: order_id, payment_ref, notice and transaction ids, the operator's reference, the agency's metadata",
	"masked numbers such as +242 06 ••• •• 01 in the journal, in checkout.events and in confirmations to the ERP",
	"descriptions, notes, customer_id, labels of dues and who owes them, and the id of the citizen's account, in checkout.events",
	"who owes a due, while the agency's ERP has not accepted its payment; give the command again after that",
	"e-mail addresses of sessions and messages that only the address of an erased account named, until the 30th day after the session's end",
	"operator cases and the audit table, which hold no contact data",
}

// erasure is what erase is asked to erase. One of the five is given.
type erasure struct {
	session, phone, email, line, account string
	reason                               string
}

func (e erasure) check() error {
	given := 0
	for _, one := range []string{e.session, e.phone, e.email, e.line, e.account} {
		if one != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return cli.Usage("say what to erase: either --session with a chs_ id, or --phone with a number, or --email with an address, or --line with the id of a disbursement line, or --account with the number of a payee's account")
	case e.line != "" && !isLine(e.line):
		return cli.Usage("--line: must be the id of a line, such as dsb_0000000000000000000000000000:17")
	case e.account != "" && personal.CanonicalAccount(e.account) == "":
		return cli.Usage("--account: must be an IBAN or an account number")
	case e.phone != "" && personal.Canonical(e.phone) == "":
		return cli.Usage("--phone: must be a phone number, such as \"+242 06 600 00 01\"")
	}
	if e.email != "" {
		if _, err := contact.ParseEmail(e.email); err != nil {
			return cli.Usage("--email: must be an e-mail address, such as name@example.org")
		}
	}
	return nil
}

// isLine reports whether an id has the form of personal.LineID.
func isLine(id string) bool {
	batch, position, ok := strings.Cut(id, ":")
	_, err := strconv.ParseUint(position, 10, 31)
	return ok && err == nil && len(batch) > len(personal.LinePrefix) && strings.HasPrefix(batch, personal.LinePrefix)
}

// address is the address of the citizen's account that is erased; ok is false for none.
func (e erasure) address() (a contact.Address, ok bool) {
	err := error(nil)
	switch {
	case e.email != "":
		a, err = contact.ParseEmail(e.email)
	case e.phone != "":
		a, err = contact.ParsePhone(e.phone) // a number of another country opens no account
	default:
		return a, false
	}
	return a, err == nil
}

// Command erases the personal data of ended sessions, and citizens' accounts.
func Command() cli.Command {
	var e erasure
	var yes bool
	return cli.Command{
		Use: "erase", Short: "Erase contact data and payers' numbers of ended sessions, payees of ended batches, and a citizen's account", JSON: "the sessions, the lines, the account and what stays", Words: words,
		Examples: []string{"erase --session chs_0000000000000000000000000000", `erase --phone "+242 06 600 00 01" --reason "request 2026-117"`, "erase --email name@example.org"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&e.session, "session", "", "the session, a chs_ id")
			f.StringVar(&e.phone, "phone", "", "all sessions with this phone number, of the contact data or of the payer, the disbursement lines that pay it, and the account of the portal that it opens; QUITTANCE_PHONE keeps it out of the shell's history")
			f.StringVar(&e.email, "email", "", "the account of the portal that this e-mail address opens; QUITTANCE_EMAIL keeps it out of the shell's history")
			f.StringVar(&e.line, "line", "", "the disbursement line: the dsb_ id of its batch, a colon and its position")
			f.StringVar(&e.account, "account", "", "all disbursement lines that pay this IBAN or account number; QUITTANCE_ACCOUNT keeps it out of the shell's history")
			f.StringVar(&e.reason, "reason", "", "recorded in the audit table, for example the number of the request; no personal data")
			cli.YesFlag(f, &yes)
		},
		Check: func(*cli.Meta) error { return e.check() },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			store, err := personal.New(personal.Config{Pool: m.Pool, Keys: keys, Now: func() time.Time { return m.Now }})
			if err != nil {
				return err
			}
			q := personal.Request{Actor: m.By, At: m.Now, By: "session", Reason: e.reason, Forget: disbursements.ForgetPayee}
			var ids []string
			what, incomplete := "the contact data and the payers' numbers of session "+e.session, error(nil)
			switch {
			case e.session != "":
				ids = []string{e.session}
			case e.phone != "":
				q.By = "phone"
				if ids, incomplete = store.Find(ctx, e.phone); incomplete != nil && !errors.Is(incomplete, personal.ErrLocked) {
					return incomplete
				}
				what = fmt.Sprintf("the personal data of %s (sessions, messages and disbursement lines) with this number, and the citizen's account of this number if there is one", render.Counted(len(ids), "subject"))
			case e.line != "":
				q.By, ids, what = "line", []string{e.line}, "the payee of line "+e.line
			case e.account != "":
				q.By = "account"
				if ids, incomplete = store.FindAccount(ctx, e.account); incomplete != nil && !errors.Is(incomplete, personal.ErrLocked) {
					return incomplete
				}
				what = fmt.Sprintf("the payees with this account, on %s", render.Counted(len(ids), "disbursement line"))
			default:
				what = "the citizen's account of this address, if there is one"
			}
			accounts, err := accountsFor(m, e, keys)
			if err != nil {
				return err
			}
			if err := m.Agree(yes, fmt.Sprintf(erasePlan, what)); err != nil {
				return err
			}
			account, err := eraseAccount(ctx, m, accounts, e)
			if err != nil {
				return err
			}
			return errors.Join(eraseAll(ctx, m, store, ids, q, account), incomplete)
		},
	}
}

// accountsFor opens the store of citizens' accounts; nil if no address is given.
func accountsFor(m *cli.Meta, e erasure, keys *secret.Keys) (*citizens.Store, error) {
	if _, ok := e.address(); !ok {
		return nil, nil
	}
	reference, err := m.OpenReferenceKey()
	if err != nil {
		return nil, err
	}
	return citizens.New(citizens.Config{Pool: m.Pool, Keys: keys, Reference: reference, Now: func() time.Time { return m.Now }})
}

// eraseAccount erases the account that the address opens. It is empty if no address is given.
func eraseAccount(ctx context.Context, m *cli.Meta, accounts *citizens.Store, e erasure) (personal.Result, error) {
	if accounts == nil {
		return "", nil
	}
	address, _ := e.address()
	if erased, err := accounts.Erase(ctx, m.By, address, e.reason); err != nil || erased {
		return personal.ResultErased, err
	}
	return personal.ResultNothing, nil
}

// eraseAll erases sessions and prints what was done. Sessions that are not erased are an
// error.
func eraseAll(ctx context.Context, m *cli.Meta, store *personal.Store, ids []string, q personal.Request, account personal.Result) error {
	rows := make([][]any, 0, len(ids))
	list, lines := make([]render.Object, 0, len(ids)), make([]render.Object, 0, len(ids))
	count := map[personal.Result]int{}
	each := func(ctx context.Context, processor *commands.Checkout, _ *sessions.Reader) error {
		for _, id := range ids {
			result, err := store.Erase(ctx, processor, id, q)
			if err != nil {
				return err
			}
			count[result]++
			if strings.HasPrefix(id, personal.LinePrefix) {
				lines = append(lines, render.Object{"line_id", id, "result", string(result)})
			} else {
				list = append(list, render.Object{"session_id", id, "result", string(result)})
			}
			rows = append(rows, []any{id, resultWords[result]})
		}
		return nil
	}
	err := error(nil)
	if len(ids) > 0 {
		err = access.WithProcessor(ctx, m, each)
	}
	if err == nil && len(ids) == 1 && count[personal.ResultUnknown] > 0 {
		if q.By == "line" {
			return errors.New("no line has this id, or its payee is erased already; ids look like dsb_…:17")
		}
		return errors.New("no session has this id, and no data are kept for it; ids look like chs_…")
	}
	shown := m.Show(render.Object{"sessions", list, "lines", lines, "account?", string(account), "stays", staysAfterErasure}, func(p *render.Page) {
		if q.By == "phone" || q.By == "account" || len(rows) > 0 {
			p.Table("No session and no line has this number.", "SESSION OR LINE,RESULT", rows)
		}
		if account != "" {
			p.Say("The citizen's account: %s.", resultWords[account])
		}
		p.Say("What stays, because accounts must be kept:\n  %s", strings.Join(staysAfterErasure, "\n  "))
	})
	switch {
	case errors.Is(err, commands.ErrUnavailable):
		err = fmt.Errorf("after %d of %d the processor did not answer in time; check that it runs, then give the command again", len(rows), len(ids))
	case err != nil:
		err = fmt.Errorf("after %d of %d: %w; give the command again", len(rows), len(ids), err)
	case count[personal.ResultOpen] > 0:
		err = fmt.Errorf("%s not erased: a session or batch that has not ended; give the command again after its end", render.CountedIs(count[personal.ResultOpen], "subject"))
	case count[personal.ResultUnknown] > 0:
		err = fmt.Errorf("%s being created and not known yet; give the command again after an hour", render.CountedIs(count[personal.ResultUnknown], "session"))
	}
	return errors.Join(shown, err)
}

var resultWords = map[personal.Result]string{
	personal.ResultErased:  "erased",
	personal.ResultNothing: "nothing left to erase",
	personal.ResultOpen:    "open: not erased",
	personal.ResultUnknown: "not known yet: not erased",
}
