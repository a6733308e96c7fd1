package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quittance/internal/connector"
	"quittance/money"
)

// transactionStatus is a code of ISO 20022 (ExternalPaymentTransactionStatus1Code).
type transactionStatus string

// The states of an instruction.
const (
	statusReceived  transactionStatus = "RCVD"
	statusInProcess transactionStatus = "ACSP"
	statusSettled   transactionStatus = "ACSC"
	statusRejected  transactionStatus = "RJCT"
)

// statuses are the words of the profile.
var statuses = map[string]transactionStatus{
	"INITIE": statusReceived, "ENVOYE": statusInProcess, "IRREVOCABLE": statusSettled, "REJETE": statusRejected,
}

// instruction is a credit transfer (pacs.008) or a request to pay (pain.013).
type instruction struct {
	txID             string
	debtor, creditor string // aliases
	amount           int64
	currency         string
	remittance       string
	until            time.Time // of a request to pay: the end of the payer's time to answer
}

// report is what the switch says of an instruction: pacs.002 or pain.014.
type report struct {
	status   transactionStatus
	reason   string // ExternalStatusReason1Code; empty without one
	endToEnd string
	amount   int64 // in minor units of currency; zero and empty when they are not readable
	currency string
	debtor   string
	creditor string
	settled  time.Time
	returned bool // the money has come back (pacs.004)
}

// The paths of instructions.
const (
	transfers = "/paiements"
	requests  = "/demandes-paiements"
)

// category is 401: the request to pay of an invoice, which has an end of its time to answer.
const category = "401"

// order is an instruction on the wire.
type order struct {
	TxID         string `json:"txId"`
	PayeurAlias  string `json:"payeurAlias"`
	PayeAlias    string `json:"payeAlias"`
	Montant      int64  `json:"montant"`
	Confirmation bool   `json:"confirmation"`
	Motif        string `json:"motif,omitempty"`
	Categorie    string `json:"categorie,omitempty"`
	Limite       string `json:"dateLimitePaiement,omitempty"`
	LimiteAnswer string `json:"dateLimiteReponse,omitempty"`
}

func (i instruction) order() ([]byte, error) {
	if i.currency != money.Default || i.amount <= 0 {
		return nil, fmt.Errorf("amount %d %q cannot be sent", i.amount, i.currency)
	}
	o := order{TxID: i.txID, PayeurAlias: i.debtor, PayeAlias: i.creditor, Montant: i.amount, Motif: i.remittance}
	if !i.until.IsZero() {
		o.Categorie, o.Limite = category, i.until.UTC().Format(time.RFC3339)
		o.LimiteAnswer = o.Limite
	}
	return json.Marshal(o)
}

// told is an answer about an instruction on the wire.
type told struct {
	TxID               string         `json:"txId"`
	Statut             string         `json:"statut"`
	StatutRaison       string         `json:"statutRaison"`
	End2endID          string         `json:"end2endId"`
	Montant            connector.Text `json:"montant"`
	Devise             string         `json:"devise"`
	PayeurAlias        string         `json:"payeurAlias"`
	PayeAlias          string         `json:"payeAlias"`
	DateIrrevocabilite string         `json:"dateIrrevocabilite"`
	RetourStatut       string         `json:"retourStatut"`
}

// report reads an answer about the instruction of an id. An answer about another one is an error.
func (t told) report(txID string) (report, error) {
	status, ok := statuses[t.Statut]
	switch {
	case !ok:
		return report{}, fmt.Errorf("unknown status %q", word(t.Statut))
	case t.TxID != "" && !strings.EqualFold(t.TxID, txID):
		return report{}, errors.New("the answer is about another instruction")
	}
	r := report{status: status, reason: reason(t.StatutRaison), endToEnd: t.End2endID, debtor: t.PayeurAlias, creditor: t.PayeAlias, returned: statuses[t.RetourStatut] == statusSettled}
	if currency, known := money.Lookup(money.Default); known && (t.Devise == "" || t.Devise == money.Default) {
		if amount, err := currency.ParseDecimal(string(t.Montant)); err == nil {
			r.amount, r.currency = amount, money.Default
		}
	}
	if at, err := time.Parse(time.RFC3339, t.DateIrrevocabilite); err == nil {
		r.settled = at.UTC()
	}
	return r, nil
}

// problem is an answer by which the switch carries nothing out (RFC 7807). An answer of a gateway in
// front of it is none.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
}

// refuses reports whether an answer is a problem of its own status: the switch has read the request
// and does nothing.
func refuses(a connector.Answer) bool {
	var p problem
	switch a.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
		return a.Decode(&p) == nil && p.Title != "" && p.Status == a.Status
	}
	return false
}

// client speaks the profile for one purpose. Safe for concurrent use.
type client struct{ *connector.Base[Account] }

func newClient(cfg connector.Config) (client, error) {
	base, err := connector.NewBase(Operator, cfg, tokenCall)
	return client{base}, err
}

// send sends an instruction and returns the answer. Its *connector.Error says whether it may have been carried out.
func (c client) send(ctx context.Context, account Account, doing, path string, i instruction) (connector.Answer, error) {
	body, err := i.order()
	if err != nil {
		return connector.Answer{}, connector.Malformed(doing, err)
	}
	return c.Authorized(ctx, account, connector.Call{Doing: doing, Method: http.MethodPost, Path: path, Body: body, Header: account.header(), Forbidden: true})
}

// status asks about an instruction. It returns false if the switch has none of the id. Where our own
// request was repeated, the switch tells of the repetition, which it rejected: the list of the
// id's instructions has the first one.
func (c client) status(ctx context.Context, account connector.Account, doing, path, txID string) (r report, found bool, err error) {
	own, a, err := c.get(ctx, account, doing, path+"/"+url.PathEscape(txID))
	if err != nil {
		return report{}, false, err
	}
	if a.Status == http.StatusNotFound && refuses(a) {
		return report{}, false, nil
	}
	if a.Status != http.StatusOK {
		return report{}, false, a.Fault(doing, false, "")
	}
	var one told
	if err := a.Decode(&one); err != nil {
		return report{}, false, connector.Malformed(doing, err)
	}
	if r, err = one.report(txID); err != nil {
		return report{}, false, connector.Malformed(doing, err)
	}
	if r.status == statusRejected && known[r.reason] {
		r, err = c.first(ctx, own, doing, path, txID)
	}
	return r, err == nil, err
}

// first returns what became of the instruction of an id that was sent more than once. Money that
// moved counts before all else, and what moved twice is added up: it agrees with no payment. An
// instruction of which only repetitions are told is open.
func (c client) first(ctx context.Context, account Account, doing, path, txID string) (report, error) {
	_, a, err := c.get(ctx, account, doing, path+"?txId="+url.QueryEscape(txID))
	if err != nil {
		return report{}, err
	}
	if a.Status != http.StatusOK {
		return report{}, a.Fault(doing, false, "")
	}
	var list struct {
		Data []told `json:"data"`
	}
	if err := a.Decode(&list); err != nil {
		return report{}, connector.Malformed(doing, err)
	}
	var all []report
	for _, t := range list.Data {
		r, err := t.report(txID)
		if err != nil {
			return report{}, connector.Malformed(doing, err)
		}
		if r.status != statusRejected || !known[r.reason] {
			all = append(all, r)
		}
	}
	return together(all), nil
}

// together returns what the reports of one id say.
func together(all []report) report {
	out := report{status: statusReceived}
	for i, r := range all {
		switch {
		case out.status == statusSettled && r.status == statusSettled:
			out.amount += r.amount
		case i == 0, r.status == statusSettled, out.status == statusRejected:
			out = r
		}
	}
	return out
}

// get makes an enquiry, at most EnquiriesPerSecond of an account.
func (c client) get(ctx context.Context, account connector.Account, doing, path string) (Account, connector.Answer, error) {
	own, err := c.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return own, connector.Answer{}, err
	}
	a, err := c.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: path, Header: own.header()})
	return own, a, err
}

func (a Account) header() map[string]string {
	return map[string]string{"x-api-key": a.APIKey, "Accept": "application/json"}
}
