package counter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/internal/operation"
	"quittance/internal/sessions"
	"quittance/internal/tills"
	"quittance/money"
	"quittance/money/language"
)

// Tills hold the cash of clerks between an opening and a closing: internal/tills. Their
// refusals are *operation.Error; any other error means that they cannot answer now.
type Tills interface {
	Current(ctx context.Context, who tills.Who) (tills.Till, bool, error)
	Recent(ctx context.Context, who tills.Who) (own, unsigned []tills.Till, err error)
	Report(ctx context.Context, who tills.Who, id string) (tills.Till, []tills.Movement, error)
	Uncounted(ctx context.Context, who tills.Who) (taken, returned tills.Sum, err error)
	Open(ctx context.Context, actor operation.Actor, who tills.Who, opening int64) (tills.Till, error)
	Count(ctx context.Context, actor operation.Actor, who tills.Who, id string, counted int64, note string) (tills.Till, error)
	Sign(ctx context.Context, actor operation.Actor, who tills.Who, id, seen string, counted int64) (tills.Till, error)
}

// Fields of the forms of a till.
const (
	fieldTill    = "till" // in the address
	fieldOpening = "opening"
	fieldCounted = "counted"
	fieldNote    = "note"
	fieldSeen    = "seen" // the version of the till that the form was made for
)

// tillWords are the texts of tills. A field's comment says what its verbs stand for.
type tillWords struct {
	Link, Title                            string
	Closed, OpeningLabel, OpeningHint      string
	Open                                   string
	Uncounted                              string // net amount, number of payments and of restitutions
	IsOpen                                 string // number, date, amount
	CountedLabel, CountedHint              string
	NoteLabel, NoteHint, Close             string
	ToSign, Own                            string
	Line                                   string // number, clerk, date
	Waiting                                string
	SignedBy                               string // clerk
	Report, Number, OpenedAt, ClosedAt     string
	Opening, Expected, Counted, Difference string
	Note, Signature                        string
	Signed                                 string // clerk, date
	Movements, NoMovements                 string
	Correct, CorrectText                   string
	Sign, SignText, SignCount              string
	NotSigned                              string
	Refusals                               map[string]string // by code
	Differs                                string
}

var frenchTill = tillWords{
	Link: "Caisse", Title: "Caisse", Closed: "Votre caisse n’est pas ouverte.", OpeningLabel: "Fonds de caisse", OpeningHint: "Les espèces de départ, en francs CFA, sans les encaissements qu’aucune caisse n’a encore comptés.",
	Open: "Ouvrir la caisse", Uncounted: "Pas encore compté par une caisse\u00a0: %s (encaissements\u00a0: %d, restitutions\u00a0: %d). Cette caisse le comptera à sa fermeture.", IsOpen: "Caisse n° %d, ouverte le %s avec %s.", CountedLabel: "Montant compté", CountedHint: "Toutes les espèces qui sont dans la caisse, fonds de caisse compris, en francs CFA.",
	NoteLabel: "Explication (en cas de différence)", NoteHint: "Sans nom ni numéro de téléphone.", Close: "Fermer la caisse",
	ToSign: "Caisses à contresigner", Own: "Mes caisses fermées", Line: "Caisse n° %d de %s, %s", Waiting: "En attente de contreseing", SignedBy: "Contresignée par %s",
	Report: "Rapport de caisse", Number: "Caisse", OpenedAt: "Ouverte le", ClosedAt: "Fermée le", Opening: "Fonds de caisse", Expected: "Montant attendu", Counted: "Montant compté", Difference: "Différence",
	Note: "Explication", Signature: "Contreseing", Signed: "%s, le %s", Movements: "Mouvements", NoMovements: "Aucun mouvement.",
	Correct: "Corriger le comptage", CorrectText: "Le comptage peut être corrigé jusqu’au contreseing. Les mouvements ne changent plus.",
	Sign: "Contresigner", SignText: "Comptez vous-même les espèces de cette caisse, puis entrez le montant. Votre contreseing est définitif.", SignCount: "Montant que vous avez compté",
	NotSigned: "En attente d’un autre agent.", Differs: "Le montant compté n’est pas le montant attendu. Comptez de nouveau, ou expliquez la différence.",
	Refusals: map[string]string{
		"till.amount_out_of_range": "Entrez un montant en francs CFA, en chiffres, sans virgule ni point.",
		"till.changed":             "Le comptage ou l’explication a changé entre-temps\u00a0: relisez le rapport, puis contresignez.",
		"till.count_differs":       "Votre montant n’est pas celui du rapport. Recomptez ensemble\u00a0; l’agent de la caisse peut corriger le comptage.",
		"till.note_malformed":      "L’explication a 200 caractères au plus, sur une ligne.",
		"till.not_closed":          "Cette caisse est encore ouverte.",
		"till.second_person":       "Un autre agent doit contresigner votre caisse.",
		"till.signed":              "Cette caisse est déjà contresignée\u00a0: elle ne change plus.",
		"till.unknown":             "Cette caisse n’existe pas.",
	},
}

var englishTill = tillWords{
	Link: "Till", Title: "Till", Closed: "Your till is not open.", OpeningLabel: "Opening cash", OpeningHint: "The cash to begin with, in CFA francs, without what no till has counted yet.",
	Open: "Open the till", Uncounted: "Not counted by a till yet: %s (payments: %d, restitutions: %d). This till will count it when it is closed.", IsOpen: "Till no. %d, opened on %s with %s.", CountedLabel: "Amount counted", CountedHint: "All cash in the till, the opening cash included, in CFA francs.",
	NoteLabel: "Explanation (of a difference)", NoteHint: "Without names or phone numbers.", Close: "Close the till",
	ToSign: "Tills to sign", Own: "My closed tills", Line: "Till no. %d of %s, %s", Waiting: "Waits for a signature", SignedBy: "Signed by %s",
	Report: "Till report", Number: "Till", OpenedAt: "Opened on", ClosedAt: "Closed on", Opening: "Opening cash", Expected: "Amount expected", Counted: "Amount counted", Difference: "Difference",
	Note: "Explanation", Signature: "Signed off by", Signed: "%s, on %s", Movements: "Movements", NoMovements: "No movements.",
	Correct: "Correct the count", CorrectText: "The count may be corrected until the till is signed. The movements do not change any more.",
	Sign: "Sign", SignText: "Count the cash of this till yourself, then enter the amount. Your signature is final.", SignCount: "Amount that you counted",
	NotSigned: "Waits for another clerk.", Differs: "The amount counted is not the amount expected. Count again, or explain the difference.",
	Refusals: map[string]string{
		"till.amount_out_of_range": "Enter an amount in CFA francs, in digits, without commas or points.",
		"till.changed":             "The count or the explanation has changed in the meantime: read the report again, then sign.",
		"till.count_differs":       "Your amount is not that of the report. Count together; the clerk of the till can correct the count.",
		"till.note_malformed":      "The explanation has 200 characters at most, on one line.",
		"till.not_closed":          "This till is still open.",
		"till.second_person":       "Another clerk has to sign your till.",
		"till.signed":              "This till is signed already: it does not change any more.",
		"till.unknown":             "There is no such till.",
	},
}

// tillView is what the pages of a till show.
type tillView struct {
	ID, Version        string
	IsOpen             string // empty without an open till
	Uncounted          string
	Own, Unsigned      []tillLine
	Facts              []sum
	InWords            string
	CanCorrect         bool
	CanSign            bool
	Difference, Signed string
}

// tillLine is a till in a list.
type tillLine struct{ ID, Text, State, Difference string }

func (v visit) who() tills.Who {
	d := v.desk
	return tills.Who{AgencyID: d.AgencyID, Live: d.Live, Clerk: d.Code, Counter: d.Counter}
}

// showTill is GET /counter/till.
func (v visit) showTill() { v.writeTill(http.StatusOK, "", "", nil) }

// writeTill answers with the clerk's till, and with a fault of its form unless the message is
// empty. Typed are the values to show again.
func (v visit) writeTill(status int, field, message string, typed map[string]string) {
	ctx := v.R.Context()
	current, open, err := v.c.cfg.Tills.Current(ctx, v.who())
	var own, unsigned []tills.Till
	var taken, returned tills.Sum
	if err == nil {
		own, unsigned, err = v.c.cfg.Tills.Recent(ctx, v.who())
	}
	if err == nil && !open {
		taken, returned, err = v.c.cfg.Tills.Uncounted(ctx, v.who())
	}
	if err != nil {
		v.unavailable("reading a till", err, v.w.NothingDone)
		return
	}
	out := v.viewAt("till", v.w.Till.Title)
	if open {
		out.Till.ID = current.ID
		out.Till.IsOpen = fmt.Sprintf(v.w.Till.IsOpen, current.Number, language.Date(v.Lang, current.OpenedAt), v.xaf(current.Opening))
	}
	if taken.Count+returned.Count > 0 {
		out.Till.Uncounted = fmt.Sprintf(v.w.Till.Uncounted, v.xaf(taken.Amount-returned.Amount), taken.Count, returned.Count)
	}
	out.Till.Own, out.Till.Unsigned = v.tillLines(own), v.tillLines(unsigned)
	v.addFault(out, field, message, typed)
	v.Write(status, "till", out)
}

func (v visit) addFault(out *view, field, message string, typed map[string]string) {
	if message == "" {
		return
	}
	out.Fault(field, message, "")
	for name, value := range typed {
		out.Typed[name] = value
	}
}

func (v visit) tillLines(all []tills.Till) (out []tillLine) {
	for _, t := range all {
		line := tillLine{ID: t.ID, Text: fmt.Sprintf(v.w.Till.Line, t.Number, t.Clerk, language.Date(v.Lang, t.ClosedAt)), State: v.w.Till.Waiting, Difference: v.signed(t.Difference())}
		if t.Signed() {
			line.State = fmt.Sprintf(v.w.Till.SignedBy, t.SignedBy)
		}
		out = append(out, line)
	}
	return out
}

// signed formats a difference with its sign.
func (v visit) signed(amount int64) string {
	if amount > 0 {
		return "+" + v.xaf(amount)
	}
	return v.xaf(amount)
}

// openTill is POST /counter/till/open.
func (v visit) openTill() {
	typed := v.Form.Get(fieldOpening)
	opening, ok := amountTyped(typed)
	if !ok {
		v.writeTill(http.StatusUnprocessableEntity, fieldOpening, v.w.Till.Refusals["till.amount_out_of_range"], map[string]string{fieldOpening: typed})
		return
	}
	if _, err := v.c.cfg.Tills.Open(v.R.Context(), v.actor(), v.who(), opening); err != nil {
		if status, field, message := v.tillRefusal(err); message != "" {
			v.writeTill(status, field, message, map[string]string{fieldOpening: typed})
			return
		}
		v.unavailable("opening a till", err, v.w.NothingDone)
		return
	}
	v.See("till")
}

// countTill is POST /counter/till/{till}/count: it closes the till or corrects its count.
func (v visit) countTill() {
	id, note := v.tillID(), strings.TrimSpace(v.Form.Get(fieldNote))
	typed := map[string]string{fieldCounted: v.Form.Get(fieldCounted), fieldNote: note}
	counted, ok := amountTyped(typed[fieldCounted])
	if !ok {
		v.refuseTill(id, http.StatusUnprocessableEntity, fieldCounted, v.w.Till.Refusals["till.amount_out_of_range"], typed)
		return
	}
	if _, err := v.c.cfg.Tills.Count(v.R.Context(), v.actor(), v.who(), id, counted, note); err != nil {
		if status, field, message := v.tillRefusal(err); message != "" {
			v.refuseTill(id, status, field, message, typed)
			return
		}
		v.unavailable("counting a till", err, v.w.Refusals[codeUnavailable])
		return
	}
	v.See("till/" + id)
}

// signTill is POST /counter/till/{till}/sign.
func (v visit) signTill() {
	id := v.tillID()
	typed := map[string]string{fieldCounted: v.Form.Get(fieldCounted)}
	counted, ok := amountTyped(typed[fieldCounted])
	if !ok {
		v.refuseTill(id, http.StatusUnprocessableEntity, fieldCounted, v.w.Till.Refusals["till.amount_out_of_range"], typed)
		return
	}
	if _, err := v.c.cfg.Tills.Sign(v.R.Context(), v.actor(), v.who(), id, v.Form.Get(fieldSeen), counted); err != nil {
		if status, field, message := v.tillRefusal(err); message != "" {
			v.refuseTill(id, status, field, message, typed)
			return
		}
		v.unavailable("signing a till", err, v.w.Refusals[codeUnavailable])
		return
	}
	v.See("till/" + id)
}

// tillID returns the till in the page's address.
func (v visit) tillID() string { return chi.URLParam(v.R, fieldTill) }

// tillRefusal says why a till refused something: the status, the field and the text. The text
// is empty for any other error.
func (v visit) tillRefusal(err error) (status int, field, message string) {
	refused := (*operation.Error)(nil)
	if !errors.As(err, &refused) {
		return 0, "", ""
	}
	switch refused.Code {
	case "till.note_required":
		// Without the difference: whoever knows it counts what is expected.
		return http.StatusUnprocessableEntity, fieldNote, v.w.Till.Differs
	case "till.unknown":
		return http.StatusNotFound, "", v.w.Till.Refusals[refused.Code]
	case "till.amount_out_of_range", "till.note_malformed", "till.count_differs":
		return http.StatusUnprocessableEntity, refused.Field, v.w.Till.Refusals[refused.Code]
	}
	return http.StatusConflict, "", v.w.Till.Refusals[refused.Code]
}

// refuseTill shows the page of the till again with a fault.
func (v visit) refuseTill(id string, status int, field, message string, typed map[string]string) {
	t, movements, err := v.c.cfg.Tills.Report(v.R.Context(), v.who(), id)
	switch refused := (*operation.Error)(nil); {
	case errors.As(err, &refused):
		v.writeTill(http.StatusNotFound, "", v.w.Till.Refusals["till.unknown"], nil)
	case err != nil:
		v.unavailable("reading a till", err, v.w.NothingDone)
	case !t.Closed() && t.Clerk == v.desk.Code:
		v.writeTill(status, field, message, typed)
	case !t.Closed():
		v.writeTill(status, "", message, nil)
	default:
		v.writeReport(status, t, movements, field, message, typed)
	}
}

// showReport is GET /counter/till/{till}.
func (v visit) showReport() {
	t, movements, err := v.c.cfg.Tills.Report(v.R.Context(), v.who(), v.tillID())
	switch refused := (*operation.Error)(nil); {
	case errors.As(err, &refused):
		v.writeTill(http.StatusNotFound, "", v.w.Till.Refusals[refused.Code], nil)
	case err != nil:
		v.unavailable("reading a till", err, v.w.NothingDone)
	case !t.Closed():
		v.See("till")
	default:
		v.writeReport(http.StatusOK, t, movements, "", "", nil)
	}
}

// writeReport answers with the report of a closed till.
func (v visit) writeReport(status int, t tills.Till, movements []tills.Movement, field, message string, typed map[string]string) {
	w := &v.w.Till
	out := v.viewAt("till/"+t.ID, w.Report)
	out.Script, out.Clerk = v.ScriptPath(), v.clerk(t.Clerk)
	out.Till = tillView{
		ID: t.ID, Version: t.Version(), Difference: v.signed(t.Difference()), Signed: w.NotSigned,
		CanCorrect: !t.Signed() && t.Clerk == v.desk.Code, CanSign: !t.Signed() && t.Clerk != v.desk.Code,
		Facts: []sum{
			{v.w.Clerk, out.Clerk},
			{v.w.Day.Place, t.Counter},
			{w.Number, strconv.FormatInt(t.Number, 10)},
			{w.OpenedAt, language.Date(v.Lang, t.OpenedAt)},
			{w.ClosedAt, language.Date(v.Lang, t.ClosedAt)},
			{w.Opening, v.xaf(t.Opening)},
			{fmt.Sprintf(v.w.Day.Taken, t.Taken.Count), v.xaf(t.Taken.Amount)},
			{fmt.Sprintf(v.w.Day.Returned, t.Returned.Count), v.xaf(-t.Returned.Amount)},
			{w.Expected, v.xaf(t.Expected())},
			{w.Counted, v.xaf(t.Counted)},
		},
	}
	currency, _ := money.Lookup(money.Default)
	out.Till.InWords, _ = currency.Words(v.Lang, t.Counted)
	if t.Signed() {
		out.Till.Signed = fmt.Sprintf(w.Signed, v.clerk(t.SignedBy), language.Date(v.Lang, t.SignedAt))
	}
	out.Stands = t.Note
	for _, m := range movements {
		row := v.movement(sessions.CashEntry{CashMovement: checkout.CashMovement{
			Kind: m.Kind, At: m.At, Amount: m.Amount, PaymentRef: m.PaymentRef, ServiceLabel: m.ServiceLabel, Receipt: m.Receipt,
		}})
		if m.Kind == checkout.CashReturned && m.TakenBy != "" {
			row.Note = fmt.Sprintf(v.w.Day.GivenBackOf, m.TakenBy)
		}
		out.Movements = append(out.Movements, row)
	}
	v.addFault(out, field, message, typed)
	v.Write(status, "report", out)
}

// amountTyped reads an amount as people type it: digits, perhaps with white space between
// them. Amounts in XAF have no decimals, so a comma or a point is refused.
func amountTyped(s string) (int64, bool) {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	amount, err := strconv.ParseInt(s, 10, 64)
	return amount, err == nil && amount <= tills.MaxAmount
}
