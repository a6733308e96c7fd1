package journeys_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/test/harness"
)

// portalWay is one citizen's way through the portal.
type portalWay struct {
	Name    string `json:"name"`
	Lang    string `json:"lang"`
	Script  bool   `json:"script"`
	Width   int    `json:"width"`
	Mail    string `json:"mail"`
	Agency  string `json:"agency"`
	Subject string `json:"subject"`
	Link    string `json:"link"`
	Part    string `json:"part"`
	Phone   string `json:"phone"`

	// says is what the page of a step must read.
	says map[string][]string
	seen map[string]bool
}

func portalWays() []*portalWay {
	return []*portalWay{
		{Name: "fr", Lang: "fr", Script: true, Width: 320, Part: "4 000", says: map[string][]string{
			"signin":     {"Voir et payer ce que vous devez"},
			"code":       {"Entrez le code"},
			"references": {"Aucune référence n’est encore rattachée à votre compte."},
			"linked":     {"La référence est ajoutée.", "Vous êtes la seule personne rattachée à cette référence."},
			"dues":       {"Reste à payer : 5 000 FCFA", "Reste à payer : 12 000 FCFA sur 15 000 FCFA", "Payable en plusieurs fois, à partir de 1 000 FCFA"},
			"cart":       {"Vérifiez votre choix", "De 1 000 FCFA à 12 000 FCFA."},
			"refused":    {"À corriger Entrez un montant de 1 000 FCFA à 12 000 FCFA."},
			"choose":     {"Montant dû 9 000 FCFA"},
			"phone":      {"Montant dû 9 000 FCFA"},
			"review":     {"Montant dû 9 000 FCFA", "Frais de service 135 FCFA", "Total 9 135 FCFA"},
			"lost":       {"La connexion est interrompue", "vous ne paierez pas deux fois"},
			"receipt":    {"Paiement réussi", "Total 9 135 FCFA"},
			"payments":   {"9 135 FCFA", "Patente 2026, Contribution de la patente Enregistré par l’administration Reçu", "Patente 2026, Contribution de la patente 5 000 FCFA", "Foncier, Contribution de la patente Enregistré par l’administration Reçu", "Foncier, Contribution de la patente 4 000 FCFA"},
			"rest":       {"Reste à payer : 8 000 FCFA sur 15 000 FCFA"},
			"over":       {"Vous êtes déconnecté."},
		}},
		{Name: "en", Lang: "en", Width: 1280, Part: "4,000", says: map[string][]string{
			"signin":     {"See and pay what you owe"},
			"code":       {"Enter the code"},
			"references": {"No reference is linked to your account yet."},
			"linked":     {"The reference is added.", "Nobody else is linked to this reference."},
			"dues":       {"Left to pay: FCFA 5,000", "Left to pay: FCFA 12,000 of FCFA 15,000", "Can be paid in parts, from FCFA 1,000"},
			"cart":       {"Check your choice", "From FCFA 1,000 to FCFA 12,000."},
			"refused":    {"To be corrected Enter an amount from FCFA 1,000 to FCFA 12,000."},
			"choose":     {"Amount due FCFA 9,000"},
			"phone":      {"Amount due FCFA 9,000"},
			"review":     {"Amount due FCFA 9,000", "Service fee FCFA 135", "Total FCFA 9,135"},
			"receipt":    {"Payment successful", "Total FCFA 9,135"},
			"payments":   {"FCFA 9,135", "Patente 2026, Contribution de la patente Recorded by the agency Receipt", "Patente 2026, Contribution de la patente FCFA 5,000", "Foncier, Contribution de la patente Recorded by the agency Receipt", "Foncier, Contribution de la patente FCFA 4,000"},
			"rest":       {"Left to pay: FCFA 8,000 of FCFA 15,000"},
			"over":       {"You are signed out."},
		}},
	}
}

// A citizen signs in, adds a reference, pays a part of one due and all of another, gets the
// receipt, and finds the rest in the list: with a script and without, in both languages, on
// a phone and on a wide screen. With a script two confirmations are lost on the way, and the
// payment is made once.
func TestPortalInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and a browser")
	}
	t.Parallel()
	u := harness.Shared(t)
	ways, byName := portalWays(), map[string]*portalWay{}
	for _, w := range ways {
		run := uuid.NewString()[:8]
		w.Mail, w.Subject, w.Agency, w.Phone = "usager."+run+"@example.org", "NIU-"+run, harness.GuichetAgency, "06 600 00 01"
		u.Control(t, "erp/impots", fmt.Sprintf(`{"dues": {%[1]q: [
			{"erp_due_ref": "%[1]s-A", "label": "Patente 2026", "amount_minor": 5000, "outstanding_minor": 5000, "original_minor": 5000, "currency": "XAF", "allow_partial": false, "revenue_line_code": "4711"},
			{"erp_due_ref": "%[1]s-B", "label": "Foncier", "amount_minor": 12000, "outstanding_minor": 12000, "original_minor": 15000, "currency": "XAF", "allow_partial": true, "minimum_amount_minor": 1000}]}}`, w.Subject))
		var codes []struct{ Code string }
		harness.Operator{Up: u}.JSON(t, &codes, "links", "codes", "impots", "--mode", "test", "--subject", w.Subject)
		w.Link, w.seen, byName[w.Name] = codes[0].Code, map[string]bool{}, w
	}
	harness.Browse(t, 3*time.Minute, "portal.mjs", map[string]any{
		"portal": u.URL(harness.AtService, "/portal"), "inbox": u.URL(harness.AtSimulators, "/inbox/mail"), "ways": ways, "shots": os.Getenv("QUITTANCE_SHOTS"),
	}, func(line []byte) {
		var s struct{ Way, Fault, Step, Lang, Text string }
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("the browser's line %q: %v", line, err)
		}
		w := byName[s.Way]
		switch {
		case s.Fault != "":
			t.Errorf("%s: %s", s.Way, s.Fault)
			return
		case s.Lang != w.Lang:
			t.Errorf("%s: the page %s is in %q", s.Way, s.Step, s.Lang)
		}
		w.seen[s.Step] = true
		for _, text := range w.says[s.Step] {
			if !strings.Contains(s.Text, text) {
				t.Errorf("%s: the page %s does not read %q: %s", s.Way, s.Step, text, s.Text)
			}
		}
	})
	for _, w := range ways {
		for step := range w.says {
			if !w.seen[step] {
				t.Errorf("%s: the page %s was not shown", w.Name, step)
			}
		}
	}
}
