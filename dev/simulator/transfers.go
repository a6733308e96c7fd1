package simulator

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// transfersIn are what people have transferred to bank accounts, by agency and code.
type transfersIn struct {
	mu        sync.Mutex
	byAccount map[[2]string][]movement
}

// of returns the transfers to an account.
func (t *transfersIn) of(a StatementAccount) []movement {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.byAccount[a.key()])
}

// add books a transfer, and returns it with the bank's reference.
func (t *transfersIn) add(a StatementAccount, m movement) movement {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byAccount == nil {
		t.byAccount = map[[2]string][]movement{}
	}
	m.id = fmt.Sprintf("BKT%s%04d", m.at.In(a.Zone).Format("060102"), len(t.byAccount[a.key()])+1)
	t.byAccount[a.key()] = append(t.byAccount[a.key()], m)
	return m
}

// bankAccounts returns the bank accounts that a request may mean.
func (s *Simulator) bankAccounts(agency, code string) (found []StatementAccount, names []string) {
	for _, a := range s.statementAccounts() {
		if a.Profile != profileBank {
			continue
		}
		names = append(names, strings.TrimPrefix(a.Agency+"/"+a.Code, "/"))
		if (agency == "" || a.Agency == agency) && (code == "" || a.Code == code) {
			found = append(found, a)
		}
	}
	return found, names
}

// controlCredit is POST /control/bank/credit: somebody transfers an amount to a bank account, with a text. The bank's statement has it
// from now on.
func (s *Simulator) controlCredit(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	var agency, code, reference string
	var amount int
	f.take("agency", &agency, "the agency's slug")
	f.take("account", &code, "the code of the account")
	if !f.take("reference", &reference, "the text of the transfer, such as a payment reference") && f.members["reference"] == nil {
		f.fail("reference", "is missing", `send the text of the transfer: {"amount": 5000, "reference": "1234567890123456"}`)
	}
	if !f.integer("amount", &amount, 1, 1_000_000_000_000) && f.members["amount"] == nil {
		f.fail("amount", "is missing", "send what is transferred, in minor units")
	}
	found, names := s.bankAccounts(agency, code)
	switch {
	case len(found) == 0:
		f.fail("account", "is not a bank account here", "one of "+strings.Join(names, ", "))
	case len(found) > 1:
		f.fail("agency", "is missing, or account: several bank accounts are meant", "one of "+strings.Join(names, ", "))
	}
	if !f.accepted(w) {
		return
	}
	a := found[0]
	m := s.received.add(a, movement{reference: reference, kind: movementPayment, at: s.cfg.Now(), amount: int64(amount)})
	writeJSON(w, http.StatusOK, map[string]string{
		"agency": a.Agency, "account": a.Code, "bank_ref": m.id, "amount_minor": strconv.FormatInt(m.amount, 10), "currency": a.Currency, "day": a.day(m.at).Format("2006-01-02"),
	})
}
