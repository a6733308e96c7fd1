package verify

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"quittance/internal/batchseal"
	"quittance/internal/receipts"
	"quittance/money"
	"quittance/money/language"
)

// What the page says of the code of a paper of a batch. A paper that is none of ours, or whose key is not known here, has the
// verdicts of receipts.
const (
	verdictCertificate receipts.Verdict = "certificate"
	verdictAdvice      receipts.Verdict = "advice"
	verdictReturned    receipts.Verdict = "advice_returned"
	verdictPaperTest   receipts.Verdict = "paper_test"
)

// paperWords are the texts of papers of batches. A sentence has {day} and {clock} for the time of the paper, that of money
// that came back for its return.
type paperWords struct {
	Verdicts, More map[receipts.Verdict]string
	// Labels are by the name of the claim, States by state.
	Labels, States map[string]string
	Held           string
}

var frenchPapers = paperWords{
	Verdicts: map[receipts.Verdict]string{
		verdictCertificate: "Certificat d’approbation authentique, état au {day} à {clock}",
		verdictAdvice:      "Avis de versement authentique, état au {day} à {clock}",
		verdictReturned:    "Avis de versement authentique\u00a0: la somme est revenue le {day} à {clock}",
		verdictPaperTest:   "Document de TEST, sans valeur",
	},
	More: map[receipts.Verdict]string{
		verdictCertificate: "Comparez ces indications avec le papier. L’administration sait ce que le lot est devenu depuis.",
		verdictAdvice:      "Comparez ces indications avec le papier. Le nom et le compte du bénéficiaire ne sont pas prouvés par le code. L’administration sait si la somme est revenue depuis.",
		verdictReturned:    "Cet avis ne prouve plus un versement.",
		verdictPaperTest:   "Aucune somme n’a été versée.",
	},
	Labels: map[string]string{
		"b_a": "Montant", "b_t": "Administration", "b_br": "Référence du lot", "b_rv": "Révision", "b_n": "Nombre de lignes", "b_st": "État", "b_lr": "Référence de la ligne", "b_pr": "Référence du versement",
		"b_or": "Référence de l’opérateur", "b_pd": "Payé le", "b_rd": "Retourné le", "b_d": "Empreinte du lot", "b_iat": "État au",
	},
	States: map[string]string{"approved": "Approuvé", "releasing": "En paiement", "done": "Terminé", "paid": "Payé", "returned": "Retourné"},
	Held:   "suspendu",
}

var englishPapers = paperWords{
	Verdicts: map[receipts.Verdict]string{
		verdictCertificate: "Authentic approval certificate, as of {day}, {clock}",
		verdictAdvice:      "Authentic payment advice, as of {day}, {clock}",
		verdictReturned:    "Authentic payment advice: the money came back on {day}, {clock}",
		verdictPaperTest:   "TEST paper, without value",
	},
	More: map[receipts.Verdict]string{
		verdictCertificate: "Compare these details with the paper. The agency knows what became of the batch since.",
		verdictAdvice:      "Compare these details with the paper. The payee’s name and account are not proven by the code. The agency knows whether the money came back since.",
		verdictReturned:    "This advice no longer proves a payment.",
		verdictPaperTest:   "No money was paid.",
	},
	Labels: map[string]string{
		"b_a": "Amount", "b_t": "Agency", "b_br": "Batch reference", "b_rv": "Revision", "b_n": "Number of lines", "b_st": "State", "b_lr": "Line reference", "b_pr": "Payment reference",
		"b_or": "Operator’s reference", "b_pd": "Paid on", "b_rd": "Returned on", "b_d": "Digest of the batch", "b_iat": "State on",
	},
	States: map[string]string{"approved": "Approved", "releasing": "Paying", "done": "Done", "paid": "Paid", "returned": "Returned"},
	Held:   "held",
}

// paper is what a token of a paper of a batch says.
type paper struct {
	verdict receipts.Verdict
	at      time.Time // of the sentence; zero for one without
	claims  batchseal.Claims
}

// checkPaper returns what a text is that has the header of a paper of a batch.
func (v *Verify) checkPaper(text string) paper {
	got, err := batchseal.Verify(v.cfg.Papers, v.cfg.Keys.Issuer(), text)
	switch {
	case errors.Is(err, receipts.ErrUnknownKey), errors.Is(err, receipts.ErrVersion):
		return paper{verdict: receipts.VerdictUnknownKey}
	case err != nil:
		return paper{verdict: receipts.VerdictNone}
	}
	out := paper{verdictCertificate, time.Unix(got.Claims.IssuedAt, 0).UTC(), got.Claims}
	switch {
	case got.Test():
		out.verdict, out.at = verdictPaperTest, time.Time{}
	case got.Claims.Kind == batchseal.KindAdvice && got.Claims.ReturnedAt != 0:
		out.verdict, out.at = verdictReturned, time.Unix(got.Claims.ReturnedAt, 0).UTC()
	case got.Claims.Kind == batchseal.KindAdvice:
		out.verdict = verdictAdvice
	}
	return out
}

// showPaper puts a paper into the page.
func (p *view) showPaper(lang money.Language, of paper, agency string) {
	w := p.W.Papers
	p.Verdict, p.More, p.Class = w.Verdicts[of.verdict], w.More[of.verdict], "warn"
	if of.claims.Kind == "" { // not verified
		p.Verdict, p.More = Sentence(lang, receipts.Result{Verdict: of.verdict}), p.W.More[of.verdict]
		return
	}
	p.Verdict = strings.NewReplacer("{day}", language.Day(lang, of.at), "{clock}", language.Clock(of.at)).Replace(p.Verdict)
	if of.verdict == verdictCertificate || of.verdict == verdictAdvice {
		p.Class = "notice"
	}
	p.Facts, p.Rows = true, append(p.W.receiptRows(lang, receipts.Claims{}, "", ""), w.rows(lang, of.claims, agency)...)
}

// rows returns the claims of a paper, in the order of the page. Without claims the values are empty.
func (w paperWords) rows(lang money.Language, c batchseal.Claims, agency string) []row {
	var amount, revision, count, state, issued, fingerprint string
	at := func(seconds int64) string {
		if seconds == 0 {
			return ""
		}
		return language.Day(lang, time.Unix(seconds, 0)) + ", " + language.Clock(time.Unix(seconds, 0))
	}
	if c.Kind != "" {
		amount = strconv.FormatInt(c.Amount, 10) + " " + c.Currency
		if currency, ok := money.Lookup(c.Currency); ok {
			amount = currency.Format(lang, c.Amount)
		}
		revision, issued, state = strconv.Itoa(c.Revision), at(c.IssuedAt), w.States[c.State]
		if c.Held != 0 {
			state += ", " + w.Held
		}
		if c.Count != 0 {
			count = strconv.Itoa(c.Count)
		}
		fingerprint = grouped(c.Digest)
	}
	out := []row{
		{Claim: "b_a", Value: amount, Whole: true},
		{Claim: "b_n", Value: count},
		{Claim: "b_t", Value: agency},
		{Claim: "b_st", Value: state},
		{Claim: "b_pd", Value: at(c.PaidAt)},
		{Claim: "b_rd", Value: at(c.ReturnedAt)},
		{Claim: "b_pr", Value: c.PayoutRef},
		{Claim: "b_or", Value: c.OperatorRef},
		{Claim: "b_lr", Value: c.LineRef},
		{Claim: "b_br", Value: c.BatchRef},
		{Claim: "b_rv", Value: revision},
		{Claim: "b_d", Value: fingerprint},
		{Claim: "b_iat", Value: issued},
	}
	for i := range out {
		out[i].Label = w.Labels[out[i].Claim]
	}
	return out
}

// grouped writes a digest as papers do: in hexadecimal, in groups of eight characters.
func grouped(digest string) string {
	raw, err := batchseal.Digest(digest)
	if err != nil {
		return ""
	}
	text := hex.EncodeToString(raw)
	var out []string
	for ; len(text) > 8; text = text[8:] {
		out = append(out, text[:8])
	}
	return strings.Join(append(out, text), " ")
}
