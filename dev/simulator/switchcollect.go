package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
)

// switchWavers is how long after a rejection the payer of the number 14 approves all the same.
const switchWavers = 30 * time.Second

// switchRequest is POST /demandes-paiements: a request to pay.
func (s *Simulator) switchRequest(w http.ResponseWriter, r *http.Request) {
	account, ok := s.switchAuthorize(w, r)
	if !ok {
		return
	}
	q, ok := switchRead(w, r)
	if !ok {
		return
	}
	fault := q.fault(q.PayeurAlias, q.PayeAlias)
	if _, err := time.Parse(time.RFC3339, q.Limite); fault == "" && (err != nil || q.Categorie != "401") {
		fault = "categorie must be 401 and dateLimiteReponse a time"
	}
	if fault != "" {
		writeProblem(w, http.StatusBadRequest, fault)
		return
	}
	c := collection{
		id: q.TxID, operator: operatorSwitch, account: account, externalID: q.Motif, amount: strconv.FormatInt(q.Montant, 10), currency: switchCurrency,
		payer: q.PayeurAlias, message: q.PayeAlias, operatorRef: switchEndToEnd(q.TxID), receivedAt: s.cfg.Now(), script: s.magicScript(q.PayeurAlias, switchMagicNumbers),
	}
	if q.PayeurAlias == switchMagicNumbers+"14" {
		c.script = script{decides: true, refusal: causeRejected, wavers: switchWavers}
	}
	switch {
	case c.script.refusal == causeUnknownPayer:
		a := switchRequestOf(c)
		a.Statut, a.StatutRaison = switchRejected, switchReasons[causeUnknownPayer]
		writeJSON(w, http.StatusOK, a)
		return
	case c.script.failFirst && s.gateways[operatorSwitch].failsFirst(c.id):
		writeProblem(w, http.StatusInternalServerError, "Une erreur inattendue s’est produite")
		return
	case !s.submit(c):
		if s.holdBack(w, r) {
			writeJSON(w, http.StatusOK, switchRequestOf(c).repeated())
		}
		return
	}
	s.accept(w, r, c, func() { writeJSON(w, http.StatusOK, switchRequestOf(c)) })
}

// switchRequestOf tells of a request to pay as it is. One that is neither approved nor rejected for a
// while is told as a settlement that timed out.
func switchRequestOf(c collection) switchAnswer {
	amount, err := strconv.ParseInt(c.reported, 10, 64)
	if err != nil {
		amount, _ = strconv.ParseInt(c.amount, 10, 64) // not taken yet
	}
	a := switchAnswer{TxID: c.id, End2endID: c.operatorRef, Statut: switchOpen, Montant: amount, PayeurAlias: c.payer, PayeAlias: c.message, DateDemande: switchTime(c.receivedAt)}
	switch {
	case c.state == stateApproved:
		a.Statut, a.DateIrrevocabilite = switchFinal, switchTime(c.decidedAt)
	case c.state == stateRejected:
		a.Statut, a.StatutRaison = switchRejected, c.reason
	case c.script.ambiguous:
		a.Statut, a.StatutRaison = switchRejected, "AB03"
	}
	return a
}

// switchCollection returns a request to pay of an account.
func (s *Simulator) switchCollection(id, account string) (switchAnswer, int, bool) {
	c, found := s.book.get(id, s.cfg.Now())
	if !found || c.operator != operatorSwitch || c.account != account {
		return switchAnswer{}, 0, false
	}
	return switchRequestOf(c), c.duplicates, true
}

// switchRequested is GET /demandes-paiements/{txId}: the last request of a txId.
func (s *Simulator) switchRequested(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "id")
	s.switchTell(w, r, id, s.switchCollection)
	s.book.enquired(id)
}

// switchRequests is GET /demandes-paiements?txId=: all requests of a txId.
func (s *Simulator) switchRequests(w http.ResponseWriter, r *http.Request) {
	s.switchList(w, r, s.switchCollection)
}

// switchReport is the report of an outcome, for whoever registers an address.
func switchReport(c collection) (method string, body []byte) {
	event := map[string]any{"evCode": "DEMANDE_PAIEMENT_REJETEE", "evDate": switchTime(c.decidedAt), "txId": c.id, "end2endId": c.operatorRef, "montant": switchRequestOf(c).Montant}
	if c.state == stateApproved {
		event["evCode"] = "DEMANDE_PAIEMENT_IRREVOCABLE"
	}
	body, err := json.Marshal(event)
	if err != nil {
		body = nil // strings and numbers always marshal
	}
	return http.MethodPost, body
}
