package simulator

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

const (
	operatorSwitch     = "switch"
	switchCurrency     = "XAF"
	switchMagicNumbers = "+2420440000" // 04 400 00 NN
	switchSpelled      = "04 400 00 "

	switchCrowdPrefix  = "+2420440100"
	switchCrowdSpelled = "04 401 00 "

	// switchCeiling is the most that the switch pays at once, in XAF.
	switchCeiling = 10_000_000
)

// The words of the switch for a status.
const (
	switchOpen     = "ENVOYE"
	switchFinal    = "IRREVOCABLE"
	switchRejected = "REJETE"

	switchDuplicate = "DU03"
)

// switchOperator is the regional switch, in the shape of the profile pi.
func switchOperator() operator {
	return operator{
		name: operatorSwitch, routes: (*Simulator).switchRoutes, index: switchIndex + payeesText(switchPayees, switchSpelled, switchCrowdSpelled),
		reasons: switchReasons, rejections: switchRejections, callback: switchReport,
	}
}

const switchIndex = `REGIONAL SWITCH (profile pi; not certified by GIMAC)   /switch
  POST /switch/oauth2/token
  POST /switch/paiements
  GET  /switch/paiements/{txId}                (of a repeated txId: the repetition, REJETE DU03)
  GET  /switch/paiements?txId={txId}           (all of them)
  GET  /switch/alias/{alias}
  POST /switch/demandes-paiements
  GET  /switch/demandes-paiements/{txId}

  With up and simulate the same is, over https with a client certificate, on a port of its own:
  the thirteenth after the first. Above 10,000,000 XAF the answer is 403.

  curl -X POST {base}/control/switch -d '{"status": 503, "times": 3}'
  curl -X POST {base}/control/switch/float -d '{"account": "the client id", "amount": "100000"}'

  Requests to pay: the payers are those of MOBILE MONEY A, with 04 400 00 in front, and
  04 400 00 14  rejects, and approves 30 s later all the same

  /control/payouts as above. What becomes of a payout depends on the payee's number:
`

// switchReasons are the words for a payer's refusals.
var switchReasons = map[cause]string{
	causeRejected: "ARFR", causeInsufficientFunds: "AG07", causeLimitReached: "AM02", causeUnknownPayer: "BE23", causeWrongPIN: "ARFR",
}

// switchRejections are the reasons that /control may choose for a request to pay.
var switchRejections = []string{"ARFR", "ARJR", "AEXR", "AC04", "AC06", "AG07", "AG10", "AG11", "AM02", "AM14", "APAR", "BE01", "BE05", "BE23", "FR01", "RR07"}

// switchPayoutReasons are the reasons that /control may choose for a payment.
var switchPayoutReasons = []string{"AC07", "AB03", "AB04", "AB08", "AB09", "AC03", "AC06", "AG01", "AG07", "AG10", "AG11", "AM02", "AM04", "AM21", "BE01", "BE23", "FR01", "RR04"}

var switchPayees = []magicPayee{
	{"01", "is paid at once", payeeScript{decides: true}},
	{"02", "is paid after 5 s", payeeScript{decides: true, after: approvalDelay}},
	{"03", "waits, for ever", payeeScript{}},
	{"04", "is refused: the account is closed", payeeScript{decides: true, refusal: "AC07"}},
	{"06", "has reached a limit", payeeScript{decides: true, refusal: "AM21"}},
	{"07", "is not known", payeeScript{decides: true, refusal: "BE23"}},
	{"08", "is paid; the request gets no answer", payeeScript{decides: true, silent: true}},
	{"09", "is said to be refused, and is paid", payeeScript{decides: true, refusal: "AB09", paysLater: true}},
	{"10", "is said to be paid, and is not", payeeScript{decides: true, unpaid: true}},
	{"11", "the first request gets a 500 and is not taken, then is paid", payeeScript{decides: true, failFirst: true}},
	{"12", "the settlement is said to have timed out, then is paid", payeeScript{decides: true, delayed: true, after: ambiguousDelay}},
	{"13", "the request gets no answer and arrives after 12 minutes, then is paid", payeeScript{decides: true, silent: true, underway: true, after: arrivalDelay}},
	{"14", "is paid, and comes back after three days less a fee of 50", payeeScript{decides: true, comesBack: true}},
	{"15", "is paid; the clock of the switch is a day ahead", payeeScript{decides: true, dayAhead: true}},
}

// switchOrder is the body of a payment and of a request to pay.
type switchOrder struct {
	TxID         string `json:"txId"`
	PayeurAlias  string `json:"payeurAlias"`
	PayeAlias    string `json:"payeAlias"`
	Montant      int64  `json:"montant"`
	Confirmation *bool  `json:"confirmation"`
	Motif        string `json:"motif"`
	Categorie    string `json:"categorie"`
	Limite       string `json:"dateLimiteReponse"`
}

var (
	switchTxID  = regexp.MustCompile(`^[A-Za-z0-9-]{1,35}$`)
	switchPhone = regexp.MustCompile(`^\+2420[456][0-9]{7}$`)
)

// fault returns what is wrong with an order whose person has an alias; empty for nothing.
func (q *switchOrder) fault(person, own string) string {
	switch {
	case !switchTxID.MatchString(q.TxID):
		return "txId must be 1 to 35 letters, digits and hyphens"
	case !switchPhone.MatchString(person):
		return "the alias of the person must be a mobile number of Congo such as +242066000001"
	case own == "" || strings.HasPrefix(own, "+"):
		return "the alias of the account is missing"
	case q.Confirmation == nil || *q.Confirmation:
		return "confirmation must be false"
	case q.Montant <= 0:
		return "montant must be a whole number above zero"
	}
	return ""
}

// switchAnswer is an answer about an order.
type switchAnswer struct {
	TxID               string `json:"txId"`
	End2endID          string `json:"end2endId"`
	Statut             string `json:"statut"`
	StatutRaison       string `json:"statutRaison,omitempty"`
	Montant            int64  `json:"montant"`
	PayeurAlias        string `json:"payeurAlias,omitempty"`
	PayeAlias          string `json:"payeAlias,omitempty"`
	DateDemande        string `json:"dateDemande,omitempty"`
	DateIrrevocabilite string `json:"dateIrrevocabilite,omitempty"`
	RetourStatut       string `json:"retourStatut,omitempty"`
}

func (s *Simulator) switchRoutes(r chi.Router) {
	r.Use(s.misbehave(operatorSwitch, func(w http.ResponseWriter, status int) {
		writeJSON(w, status, map[string]string{"message": "Service Unavailable"})
	}))
	r.Post("/oauth2/token", s.switchToken)
	r.Post("/paiements", s.switchPay)
	r.Get("/paiements", s.switchPayments)
	r.Get("/paiements/{id}", s.switchPayment)
	r.Get("/alias/{alias}", s.switchAlias)
	r.Post("/demandes-paiements", s.switchRequest)
	r.Get("/demandes-paiements", s.switchRequests)
	r.Get("/demandes-paiements/{id}", s.switchRequested)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusForbidden, map[string]string{"message": "Missing Authentication Token"})
	})
}

// switchToken is POST /oauth2/token: OAuth2 client credentials.
func (s *Simulator) switchToken(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	key := r.Header.Get("X-Api-Key")
	if !ok || r.FormValue("grant_type") != "client_credentials" || !s.switchKnows(id, secret, key) {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	now := s.cfg.Now()
	token := s.gateways[operatorSwitch].grant(grant{account: id, key: key, expiresAt: now.Add(s.cfg.TokenLifetime)}, now)
	writeJSON(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(s.cfg.TokenLifetime / time.Second)})
}

func (s *Simulator) switchKnows(id, secret, key string) bool {
	if s.cfg.Switch != nil {
		return s.cfg.Switch(id, secret, key)
	}
	return id != "" && secret != "" && key != ""
}

// switchAuthorize returns the client of a call, or answers with a refusal.
func (s *Simulator) switchAuthorize(w http.ResponseWriter, r *http.Request) (account string, ok bool) {
	token, ok := s.gateways[operatorSwitch].granted(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), s.cfg.Now())
	if !ok || token.key != r.Header.Get("X-Api-Key") {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"message": "Unauthorized"})
		return "", false
	}
	return token.account, true
}

// switchRead reads an order, or answers with a refusal.
func switchRead(w http.ResponseWriter, r *http.Request) (q switchOrder, ok bool) {
	body, ok := readBody(w, r, maxOperatorBody)
	if ok && (!isJSON(r) || json.Unmarshal(body, &q) != nil) {
		writeProblem(w, http.StatusBadRequest, "the body is not the JSON of an order")
		return q, false
	}
	return q, ok
}

// switchPay is POST /paiements: a credit transfer.
func (s *Simulator) switchPay(w http.ResponseWriter, r *http.Request) {
	account, ok := s.switchAuthorize(w, r)
	if !ok {
		return
	}
	q, ok := switchRead(w, r)
	if !ok {
		return
	}
	if fault := q.fault(q.PayeAlias, q.PayeurAlias); fault != "" {
		writeProblem(w, http.StatusBadRequest, fault)
		return
	}
	if q.Montant > switchCeiling {
		writeProblem(w, http.StatusForbidden, "the amount is above the ceiling of a payment")
		return
	}
	reference, note, _ := strings.Cut(q.Motif, " ")
	p := payout{
		id: q.TxID, operator: operatorSwitch, account: account, externalID: reference, note: note, amount: strconv.FormatInt(q.Montant, 10), currency: switchCurrency,
		payee: q.PayeAlias, message: q.PayeurAlias, operatorRef: switchEndToEnd(q.TxID), receivedAt: s.cfg.Now(),
		does: payeeScriptOf(switchPayees, q.PayeAlias, switchMagicNumbers, switchCrowdPrefix),
	}
	if p.does.failFirst && s.gateways[operatorSwitch].failsFirst(p.id) {
		writeProblem(w, http.StatusInternalServerError, "Une erreur inattendue s’est produite")
		return
	}
	taken := s.payouts.accept(p)
	if taken && p.does.silent {
		panic(http.ErrAbortHandler)
	}
	if made, _ := s.payouts.get(p.id, false); s.holdBack(w, r) {
		answer := switchPaymentOf(p)
		if taken {
			answer = switchPaymentOf(made)
		} else {
			answer = answer.repeated()
		}
		writeJSON(w, http.StatusOK, answer)
	}
}

// switchPaymentOf tells of a payment as it is. A settlement that timed out is told as rejected
// until it is settled.
func switchPaymentOf(p payout) switchAnswer {
	amount, _ := strconv.ParseInt(p.amount, 10, 64) // of an order
	a := switchAnswer{
		TxID: p.id, End2endID: p.operatorRef, Statut: switchOpen, Montant: amount, PayeurAlias: p.message, PayeAlias: p.payee, DateDemande: switchTime(p.receivedAt),
	}
	switch {
	case p.state == payoutPaid:
		at := p.decidedAt
		if p.does.dayAhead {
			at = at.Add(24 * time.Hour)
		}
		a.Statut, a.DateIrrevocabilite = switchFinal, switchTime(at)
		if !p.returnedAt.IsZero() && p.fee == "0" {
			a.RetourStatut = switchFinal
		}
	case p.state == payoutRefused:
		a.Statut, a.StatutRaison = switchRejected, p.reason
	case p.does.delayed:
		a.Statut, a.StatutRaison = switchRejected, "AB03"
	}
	return a
}

// repeated tells of a repetition of an order: it is rejected, and has a number of its own.
func (a switchAnswer) repeated() switchAnswer {
	a.End2endID += "D"
	a.Statut, a.StatutRaison, a.DateIrrevocabilite, a.RetourStatut = switchRejected, switchDuplicate, "", ""
	return a
}

// switchPayment is GET /paiements/{txId}: the last order of a txId. A payment of another client is unknown.
func (s *Simulator) switchPayment(w http.ResponseWriter, r *http.Request) {
	s.switchTell(w, r, chi.URLParam(r, "id"), func(id, account string) (switchAnswer, int, bool) {
		p, found := s.payouts.get(id, true)
		return switchPaymentOf(p), p.duplicates, found && p.operator == operatorSwitch && p.account == account
	})
}

// switchPayments is GET /paiements?txId=: all orders of a txId.
func (s *Simulator) switchPayments(w http.ResponseWriter, r *http.Request) {
	s.switchList(w, r, func(id, account string) (switchAnswer, int, bool) {
		p, found := s.payouts.get(id, false)
		return switchPaymentOf(p), p.duplicates, found && p.operator == operatorSwitch && p.account == account
	})
}

// switchFind returns the order of a txId of an account as it is, and how often it was repeated.
type switchFind func(id, account string) (a switchAnswer, repeated int, found bool)

func (s *Simulator) switchTell(w http.ResponseWriter, r *http.Request, id string, find switchFind) {
	account, ok := s.switchAuthorize(w, r)
	if !ok {
		return
	}
	a, repeated, found := find(id, account)
	switch {
	case !s.holdBack(w, r):
	case !found:
		writeProblem(w, http.StatusNotFound, "La ressource n’existe pas dans le système")
	case repeated > 0:
		writeJSON(w, http.StatusOK, a.repeated())
	default:
		writeJSON(w, http.StatusOK, a)
	}
}

func (s *Simulator) switchList(w http.ResponseWriter, r *http.Request, find switchFind) {
	account, ok := s.switchAuthorize(w, r)
	if !ok {
		return
	}
	all := []switchAnswer{}
	if a, repeated, found := find(r.URL.Query().Get("txId"), account); found {
		for range repeated {
			all = append(all, a.repeated())
		}
		all = append(all, a)
	}
	if s.holdBack(w, r) {
		writeJSON(w, http.StatusOK, map[string]any{"data": all, "meta": map[string]int{"total": len(all)}})
	}
}

// switchAlias is GET /alias/{alias}: who has an alias.
func (s *Simulator) switchAlias(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.switchAuthorize(w, r); !ok {
		return
	}
	alias := chi.URLParam(r, "alias")
	h := holderOf(alias, switchMagicNumbers)
	switch {
	case h.silent:
		panic(http.ErrAbortHandler)
	case !s.holdBack(w, r):
	case h.unknown || !switchPhone.MatchString(alias):
		writeProblem(w, http.StatusNotFound, "L’alias n’existe pas")
	default:
		writeJSON(w, http.StatusOK, map[string]string{"cle": alias, "type": "MBNO", "nom": h.given + " " + h.family, "pays": "CG"})
	}
}

func switchTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// switchEndToEnd derives the switch's own number of an order from ours.
func switchEndToEnd(txID string) string {
	return "ECG" + strconv.FormatUint(fifteenDigits(uuid.NewSHA1(uuid.NameSpaceOID, []byte(txID))), 10)
}
