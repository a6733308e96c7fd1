package simulator

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"quittance/money"
)

// maxCardForm bounds the form that a browser sends.
const maxCardForm = 4 << 10

const cardStyle = `body{font:1rem/1.5 system-ui,sans-serif;margin:0;background:#f4f4f2;color:#1b1b1b}
main{max-width:34rem;margin:0 auto;padding:1.5rem 1rem}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.125rem}
.note{background:#fff3cd;color:#4a3800;padding:.5rem .75rem;border-radius:.25rem}
.due{font-size:1.75rem;font-weight:700;margin:.5rem 0}
label{display:block;font-weight:600}
input{font:inherit;width:100%;box-sizing:border-box;padding:.6rem;border:1px solid #5c5c5c;border-radius:.25rem}
button{font:inherit;width:100%;margin-top:.75rem;padding:.7rem;border:1px solid #1d4e3f;border-radius:.25rem;background:#fff;color:#1d4e3f}
button.main{background:#1d4e3f;color:#fff}
button:focus-visible,input:focus-visible,a:focus-visible{outline:3px solid #b45309;outline-offset:2px}
a{display:inline-block;padding:.625rem 0;color:#1d4e3f}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .5rem .25rem 0;border-bottom:1px solid #c9c9c4;font-weight:400}`

// cardStyleHash allows only the page's own style in its policy.
var cardStyleHash = func() string {
	sum := sha256.Sum256([]byte(cardStyle))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var cardTemplate = template.Must(template.New("card").Parse(`<!doctype html>
<html lang="{{.Words.Lang}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{{.Words.Title}}</title>
<style>{{.Style}}</style>
</head>
<body>
<main>
<p class="note">{{.Words.Note}}</p>
<h1>{{.Words.Title}}</h1>
{{if .Missing}}<p role="alert">{{.Words.Missing}}</p>
{{else}}<p>{{.Words.Payee}} <strong>{{.Merchant}}</strong></p>
{{with .Description}}<p>{{.}}</p>{{end}}
<p class="due">{{.Amount}}</p>
{{if .Closed}}<p role="status">{{.Closed}}</p>
<p><a href="{{.ReturnURL}}">{{.Words.Back}}</a></p>
{{else}}<form method="post" action="{{.Action}}">
<input type="hidden" name="token" value="{{.Token}}">
<label for="card">{{.Words.Card}}</label>
<input id="card" name="card" value="{{.Number}}" inputmode="numeric" autocomplete="off" spellcheck="false" maxlength="24" aria-describedby="card-note">
<p id="card-note">{{.Words.CardNote}}</p>
<button class="main" name="action" value="pay">{{.Words.Pay}}</button>
<h2>{{.Words.Or}}</h2>
<button name="action" value="approve">{{.Words.Approve}}</button>
<button name="action" value="decline">{{.Words.Decline}}</button>
<button name="action" value="fail_authentication">{{.Words.Fail}}</button>
<button name="action" value="abandon">{{.Words.Abandon}}</button>
</form>
<h2>{{.Words.Magic}}</h2>
<table>
{{range .Numbers}}<tr><th scope="row">{{index . 0}}</th><td>{{index . 1}}</td></tr>
{{end}}</table>
{{end}}{{end}}</main>
</body>
</html>
`))

// cardWords are the page's texts in one language.
type cardWords struct {
	Lang, Title, Note, Missing, Payee, Back, Card, CardNote, Pay, Or, Approve, Decline, Fail, Abandon, Magic string
	Approved, Refused, Expired, Working                                                                      string
}

var cardFrench = cardWords{
	Lang: "fr", Title: "Paiement par carte (simulation)", Note: "Banque simulée, pour le développement. N’entrez pas une vraie carte.",
	Missing: "Cette page de paiement n’existe pas.", Payee: "Bénéficiaire :", Back: "Revenir au service",
	Card: "Numéro de carte", CardNote: "Les deux derniers chiffres décident de la suite.", Pay: "Payer avec cette carte",
	Or: "Ou décider directement", Approve: "Accepter le paiement", Decline: "Refuser le paiement",
	Fail: "Échec de l’authentification", Abandon: "Abandonner", Magic: "Numéros de test : 4000 0000 0000 00…",
	Approved: "Le paiement est accepté.", Refused: "Le paiement n’a pas abouti.", Expired: "Le délai de paiement est dépassé.", Working: "Le paiement est en cours de traitement.",
}

var cardEnglish = cardWords{
	Lang: "en", Title: "Card payment (simulation)", Note: "A simulated bank, for development. Do not enter a real card.",
	Missing: "There is no such payment page.", Payee: "Payee:", Back: "Back to the service",
	Card: "Card number", CardNote: "The last two digits decide what happens.", Pay: "Pay with this card",
	Or: "Or decide directly", Approve: "Approve the payment", Decline: "Decline the payment",
	Fail: "Fail the authentication", Abandon: "Abandon", Magic: "Test numbers: 4000 0000 0000 00…",
	Approved: "The payment is approved.", Refused: "The payment did not succeed.", Expired: "The time to pay is over.", Working: "The payment is being processed.",
}

// cardLanguage returns the language of ?lang=, else the first of the two languages in the
// browser's list, else French.
func cardLanguage(r *http.Request) cardWords {
	for _, tag := range append([]string{r.URL.Query().Get("lang")}, strings.Split(r.Header.Get("Accept-Language"), ",")...) {
		switch tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), ";"); {
		case tag == "fr" || strings.HasPrefix(tag, "fr-"):
			return cardFrench
		case tag == "en" || strings.HasPrefix(tag, "en-"):
			return cardEnglish
		}
	}
	return cardFrench
}

// cardView holds the values of the template.
type cardView struct {
	Words                                                   cardWords
	Style                                                   template.CSS
	Missing                                                 bool
	Merchant, Description, Amount, Closed, ReturnURL, Token string
	Action, Number                                          string
	Numbers                                                 [][2]string
}

// cardNumbers are the magic cards in the language of the page.
func cardNumbers(words cardWords) (out [][2]string) {
	for _, m := range magicNumbers {
		text := m.card[0]
		if words.Lang == cardEnglish.Lang {
			text = m.card[1]
		}
		if text != "" {
			out = append(out, [2]string{m.digits, text})
		}
	}
	return out
}

// cardPageOf finds the transaction of a page by its id and token.
func (s *Simulator) cardPageOf(transactionID, token string) (collection, bool) {
	bare, ok := strings.CutPrefix(transactionID, cardTransaction)
	var id uuid.UUID
	if raw, err := hex.DecodeString(bare); !ok || err != nil || copy(id[:], raw) != len(id) || len(raw) != len(id) {
		return collection{}, false
	}
	c, found := s.book.get(id.String(), s.cfg.Now())
	if !found || c.operator != operatorCard || subtle.ConstantTimeCompare([]byte(c.page.token), []byte(token)) != 1 {
		return collection{}, false
	}
	return c, true
}

// cardShow is GET /card/pay/{transaction_id}?token=…: the page where citizens pay.
func (s *Simulator) cardShow(w http.ResponseWriter, r *http.Request) {
	words := cardLanguage(r)
	c, found := s.cardPageOf(chi.URLParam(r, "transaction_id"), r.URL.Query().Get("token"))
	if !found {
		renderCard(w, http.StatusNotFound, cardView{Words: words, Missing: true}, "")
		return
	}
	v := cardView{
		Words: words, Merchant: c.account, Description: c.message, Amount: cardAmount(c, words.Lang), ReturnURL: c.page.returnURL,
		Token: c.page.token, Action: "/card/pay/" + c.operatorRef + "?lang=" + words.Lang, Number: cardMagicPrefix + "01",
		Numbers: cardNumbers(words),
	}
	switch {
	case c.state == stateApproved:
		v.Closed = words.Approved
	case c.state == stateRejected && c.reason == cardExpired, !s.cfg.Now().Before(c.page.expiresAt):
		v.Closed = words.Expired
	case c.state == stateRejected:
		v.Closed = words.Refused
	case c.chosen:
		v.Closed = words.Working
	}
	renderCard(w, http.StatusOK, v, c.page.returnURL)
}

// cardPay is POST /card/pay/{transaction_id}: a button of the page. The first call
// decides; every call sends the citizen back.
func (s *Simulator) cardPay(w http.ResponseWriter, r *http.Request) {
	words := cardLanguage(r)
	r.Body = http.MaxBytesReader(w, r.Body, maxCardForm)
	if err := r.ParseForm(); err != nil {
		renderCard(w, http.StatusBadRequest, cardView{Words: words, Missing: true}, "")
		return
	}
	c, found := s.cardPageOf(chi.URLParam(r, "transaction_id"), r.PostForm.Get("token"))
	if !found {
		renderCard(w, http.StatusNotFound, cardView{Words: words, Missing: true}, "")
		return
	}
	now := s.cfg.Now()
	number := strings.Map(func(c rune) rune {
		if c == ' ' || c == '-' || c == '\u00a0' {
			return -1
		}
		return c
	}, r.PostForm.Get("card"))
	script, ok := s.cardScript(r.PostForm.Get("action"), number, c.page.expiresAt.Sub(now))
	if !ok {
		renderCard(w, http.StatusBadRequest, cardView{Words: words, Missing: true}, "")
		return
	}
	if now.Before(c.page.expiresAt) {
		if due, chosen := s.book.choose(c.id, script, maskCard(number), now); chosen {
			s.decisions.add(due, c.id)
		}
	}
	cardHeaders(w, c.page.returnURL)
	http.Redirect(w, r, c.page.returnURL, http.StatusSeeOther)
}

// maskCard keeps only the last four digits, because a citizen may have typed a real card
// number.
func maskCard(number string) string {
	if len(number) < 12 || strings.Trim(number, "0123456789") != "" {
		return ""
	}
	return "•••• " + number[len(number)-4:]
}

// cardAmount formats an amount for the page.
func cardAmount(c collection, lang string) string {
	currency, known := money.Lookup(c.currency)
	amount, err := strconv.ParseInt(c.amount, 10, 64)
	if !known || err != nil {
		return c.amount + " " + c.currency
	}
	language := money.French
	if lang == "en" {
		language = money.English
	}
	return currency.Format(language, amount)
}

// cardHeaders allows the browser to show the page and to post its form, and nothing else.
// form-action names the merchant's origin too, because browsers apply it to the
// redirect that answers the form.
func cardHeaders(w http.ResponseWriter, returnURL string) {
	formAction := "'self'"
	if u, err := url.Parse(returnURL); err == nil && u.Host != "" {
		formAction += " " + u.Scheme + "://" + u.Host
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+cardStyleHash+"; form-action "+formAction+"; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

func renderCard(w http.ResponseWriter, status int, v cardView, returnURL string) {
	v.Style = cardStyle
	cardHeaders(w, returnURL)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = cardTemplate.Execute(w, v) // an error means that the browser has disconnected
}
