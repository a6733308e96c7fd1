package registry

import (
	"context"
	"slices"
	"strings"

	"quittance/internal/connector"
	"quittance/internal/registry/db"
	"quittance/internal/signed"
)

// PayoutAccount is an account with an operator from which an agency pays people.
type PayoutAccount struct {
	// Code names the account among those of its agency and mode. It is the name of the account's type.
	Code string
	// Operator is the short name of the operator.
	Operator string
	// Modes are the payment modes of the lines that the account pays, sorted. A mode is one account's. A replaced
	// account has none.
	Modes []string
	// Account has the type of the operator's payout connector. When Locked is set, it holds only the address and the
	// flags; in a process with the key of reports alone it has its fingerprint and no secret of calls.
	Account connector.Account
	// Simulated means that the account is one with the simulators, which replaces a missing test account in developer
	// mode.
	Simulated bool
	// Replaced means that the agency has another account now. Nobody is paid from this one; its operator is still
	// asked about the attempts that name it.
	Replaced bool
	// Locked is MerchantAccount.Locked.
	Locked bool
}

// modeOfFirst is the payment mode that the simulated account of the first operator has besides the operator's name.
const modeOfFirst = "mobile_money"

type payoutMode struct {
	agencyID string
	live     bool
	mode     string
}

func (l *loader) payoutModes() {
	read(l, "payout_modes", func(r db.PayoutMode, believed bool) {
		if !believed {
			r.Account = ""
		}
		l.s.payoutModes[payoutMode{r.AgencyID, r.Live, r.Mode}] = r.Account
	})
}

// modesOf lists the payment modes of an account, sorted.
func (s *Snapshot) modesOf(key AccountKey) []string {
	var out []string
	for m, account := range s.payoutModes {
		if m.agencyID == key.AgencyID && m.live == key.Live && account == key.Name {
			out = append(out, m.mode)
		}
	}
	slices.Sort(out)
	return out
}

// PayoutModes returns the accounts of an agency, by the payment modes of which lines they pay, as they were when the
// transaction began. Rows that do not verify are left out.
func (t *Tx) PayoutModes(agencyID string, live bool) map[string]string {
	out := map[string]string{}
	for m, account := range t.Before.payoutModes {
		if m.agencyID == agencyID && m.live == live && !t.rows.Forged(m.row()) {
			out[m.mode] = account
		}
	}
	return out
}

func (m payoutMode) row() signed.ID { return signed.NewID("payout_modes", m.agencyID, m.live, m.mode) }

// PutPayoutModes stores the payment modes of the lines that an account pays. Other modes of the account are removed, and
// modes of other accounts become this one's.
func (t *Tx) PutPayoutModes(ctx context.Context, key AccountKey, modes []string) error {
	for _, mode := range t.Before.modesOf(key) {
		if slices.Contains(modes, mode) {
			continue
		}
		// Another account of the same file may have the mode by now.
		if err := t.q.RemovePayoutMode(ctx, db.RemovePayoutModeParams{AgencyID: key.AgencyID, Live: key.Live, Mode: mode, Account: key.Name}); err != nil {
			return err
		}
	}
	for _, mode := range modes {
		m := payoutMode{key.AgencyID, key.Live, mode}
		if err := t.rows.Anew(ctx, t, m.row()); err != nil {
			return err
		}
		if err := t.q.UpsertPayoutMode(ctx, db.UpsertPayoutModeParams{AgencyID: key.AgencyID, Live: key.Live, Mode: mode, Account: key.Name}); err != nil {
			return err
		}
	}
	return nil
}

// PayoutAccounts lists the accounts from which an agency pays people in a mode, by code: the present ones, also those that
// are locked. In developer mode an account with the simulators replaces each missing test account of a known agency,
// never a live one. It pays lines of the operator's name, and the first operator's also those of mobile_money, unless
// the agency has set or lost the account of the payment mode.
func (r *Registry) PayoutAccounts(agencyID string, live bool) []PayoutAccount {
	var out []PayoutAccount
	s := r.current.Load()
	for _, operator := range r.disbursers() {
		if a, ok := r.present(s, agencyID, live, operator.Operator, operator.Disburser.Account); ok {
			out = append(out, r.payoutAccount(s, agencyID, live, operator, a))
		}
	}
	slices.SortFunc(out, func(a, b PayoutAccount) int { return strings.Compare(a.Code, b.Code) })
	return out
}

// PayoutAccount returns the account with a code that an attempt names by its fingerprint: the present one, or one that it
// replaced. An account whose address or credentials were corrected is returned as it is now. An empty fingerprint names
// the present one. An account that is locked cannot be found.
func (r *Registry) PayoutAccount(agencyID string, live bool, code, fingerprint string) (PayoutAccount, bool) {
	s := r.current.Load()
	for _, operator := range r.disbursers() {
		if t := operator.Disburser.Account; t.Name == code {
			a, ok := r.named(s, agencyID, live, operator.Operator, t, fingerprint)
			if !ok {
				return PayoutAccount{}, false
			}
			return r.payoutAccount(s, agencyID, live, operator, a), true
		}
	}
	return PayoutAccount{}, false
}

// payoutAccount returns an account with its modes.
func (r *Registry) payoutAccount(s *Snapshot, agencyID string, live bool, operator connector.Registration, a MerchantAccount) PayoutAccount {
	p := PayoutAccount{
		Code: operator.Disburser.Account.Name, Operator: operator.Operator, Account: a.Account, Simulated: a.Simulated, Replaced: a.Replaced, Locked: a.Locked,
	}
	switch {
	case a.Simulated:
		p.Modes = append(p.Modes, operator.Operator)
		if operator.Operator == r.disbursers()[0].Operator {
			p.Modes = append(p.Modes, modeOfFirst)
		}
		p.Modes = slices.DeleteFunc(p.Modes, func(mode string) bool {
			_, set := s.payoutModes[payoutMode{agencyID, live, mode}]
			return set
		})
		slices.Sort(p.Modes)
	case !a.Replaced:
		p.Modes = s.modesOf(AccountKey{agencyID, live, p.Code})
	}
	return p
}

// disbursers lists the operators that pay people.
func (r *Registry) disbursers() []connector.Registration {
	return slices.DeleteFunc(slices.Clone(r.cfg.Operators.Operators), func(o connector.Registration) bool { return o.Disburser == nil })
}
