package citizen_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"quittance/test/await"

	"github.com/andybalholm/brotli"
)

// shown is a page in a browser without JavaScript.
type shown struct {
	status   int
	location string
	text     string // of the HTML
	policy   string
}

// page asks for a page of the portal, or sends a form to it. It follows nothing.
func (b *browser) page(method, path string, form url.Values) shown {
	t := b.w.t
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(t.Context(), method, b.base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = b.header.Clone()
	req.Header.Set("X-Forwarded-For", b.client)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	req.Header.Set("Accept-Encoding", "br")
	resp, err := httpclient.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	packed, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	const most = 8 << 10
	if len(packed) > most {
		t.Errorf("%s has %d bytes", path, len(packed))
	}
	raw := packed
	if resp.Header.Get("Content-Encoding") == "br" {
		if raw, err = io.ReadAll(brotli.NewReader(strings.NewReader(string(packed)))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range resp.Cookies() {
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	if resp.StatusCode < 300 && resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s may be cached", path)
	}
	return shown{resp.StatusCode, resp.Header.Get("Location"), html.UnescapeString(string(raw)), resp.Header.Get("Content-Security-Policy")}
}

func (s shown) want(t *testing.T, status int, texts ...string) shown {
	t.Helper()
	if s.status != status {
		t.Fatalf("answers %d to %s, want %d:\n%s", s.status, s.location, status, s.text)
	}
	for _, text := range texts {
		if !strings.Contains(s.text, text) {
			t.Fatalf("the page does not say %q:\n%s", text, s.text)
		}
	}
	return s
}

var (
	inputs = regexp.MustCompile(`<input [^>]*>`)
	named  = regexp.MustCompile(`name="([^"]*)"`)
	valued = regexp.MustCompile(`value="([^"]*)"`)
)

// form returns the fields of the form with the action. Fields with a choice are left out.
func (s shown) form(t *testing.T, action string) url.Values {
	t.Helper()
	_, after, found := strings.Cut(s.text, `action="`+action+`"`)
	if !found {
		t.Fatalf("no form for %s:\n%s", action, s.text)
	}
	inside, _, _ := strings.Cut(after, "</form>")
	out := url.Values{}
	for _, input := range inputs.FindAllString(inside, -1) {
		name := named.FindStringSubmatch(input)
		if name == nil || strings.Contains(input, `type="checkbox"`) {
			continue
		}
		value := ""
		if v := valued.FindStringSubmatch(input); v != nil {
			value = v[1]
		}
		out.Add(name[1], value)
	}
	return out
}

// choices returns the values of the check boxes.
func (s shown) choices() (out []string) {
	for _, input := range inputs.FindAllString(s.text, -1) {
		if strings.Contains(input, `type="checkbox"`) {
			out = append(out, valued.FindStringSubmatch(input)[1])
		}
	}
	return out
}

const narrow = "\u202f"

// enter signs the n-th person in on the pages.
func (b *browser) enter(t *testing.T, n int) shown {
	t.Helper()
	typed, to := numbered(t, n)
	first := b.page(http.MethodGet, "/portal", nil).want(t, 200, "Voir et payer ce que vous devez")
	form := first.form(t, "/portal/sign-in")
	form.Set("address", typed)
	before := len(b.w.codes(to))
	asked := b.page(http.MethodPost, "/portal/sign-in", form).want(t, 200, "Entrez le code", typed)
	await.Until(t, "a code is sent", func() bool { return len(b.w.codes(to)) > before })
	form = asked.form(t, "/portal/verify")
	form.Set("code", "12")
	asked = b.page(http.MethodPost, "/portal/verify", form).want(t, 422, "Ce code n’est pas valable")
	form = asked.form(t, "/portal/verify")
	code := b.w.code(to)
	form.Set("code", code[:3]+" "+code[3:])
	return b.page(http.MethodPost, "/portal/verify", form).want(t, 303)
}

// A citizen without JavaScript goes from the first page to the receipt and the history.
func TestPortal(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.browse()
	b.page(http.MethodPost, "/portal/sign-in", url.Values{"address": {"12"}}).want(t, 422, "Entrez un numéro de mobile du Congo", `value="12"`)
	if to := b.enter(t, 1).location; to != "/portal/references?lang=fr" {
		t.Errorf("the first sign-in leads to %s", to)
	}
	refs := b.page(http.MethodGet, "/portal/references", nil).want(t, 200, "Aucune référence")
	form := refs.form(t, "/portal/references")
	form.Set("tenant_id", agency)
	form.Set("subject_ref", "TP-1001")
	b.page(http.MethodPost, "/portal/references", form).want(t, 422, "Entrez le code de rattachement", `value="TP-1001"`)
	form.Set("link_code", "0000000000")
	b.page(http.MethodPost, "/portal/references", form).want(t, 422, "Ce code n’appartient pas à cette référence", `value="0000000000"`)
	form.Set("link_code", w.linkCode(agency, "TP-1001"))
	form.Set("subject_ref", "tp-1001") // as phones write it
	b.page(http.MethodPost, "/portal/references", form).want(t, 303)
	b.page(http.MethodGet, "/portal/references?done=linked", nil).want(t, 200, "La référence est ajoutée", "TP-1001", "Vous êtes la seule personne")

	dues := b.page(http.MethodGet, "/portal", nil).want(t, 200, "Direction générale des impôts", "Reste à payer", "En retard\u00a0: à payer au plus tard le", "Payable en plusieurs fois")
	b.page(http.MethodGet, "/portal?lang=en", nil).want(t, 200, "Left to pay", "Overdue: to be paid by", "Can be paid in parts")
	dues.want(t, 200, "Total à payer</span> <strong class=\"n\">185"+narrow+"000"+narrow+"FCFA")
	if n := len(dues.choices()); n != 3 {
		t.Fatalf("%d dues can be chosen, want 3", n)
	}
	b.page(http.MethodPost, "/portal/cart", url.Values{}).want(t, 422, "Vous n’avez rien choisi")
	for _, n := range []int{21, 400} { // the second form is larger than what is read
		b.page(http.MethodPost, "/portal/cart", url.Values{"due": slices.Repeat(dues.choices()[:1], n)}).want(t, 422, "Un paiement a au plus 20 éléments")
	}
	cart := b.page(http.MethodPost, "/portal/cart", url.Values{"due": {dues.choices()[0], dues.choices()[2]}}).want(t, 200, "Vérifiez votre choix", "De 10"+narrow+"000"+narrow+"FCFA")
	form = cart.form(t, "/portal/checkout")
	partial := ""
	for name := range form {
		if strings.HasPrefix(name, "amount-") {
			partial = name
		}
	}
	for _, wrong := range []string{"9999", "1000000", "x", "-5", "10 000,5", "9007199254740993"} {
		form.Set(partial, wrong)
		b.page(http.MethodPost, "/portal/checkout", form).want(t, 422, "Entrez un montant de", `value="`+wrong+`"`, `href="#`+partial+`"`)
	}
	// A cleared amount is not the whole due.
	for _, cleared := range []string{"", " "} {
		form.Set(partial, cleared)
		blank := b.page(http.MethodPost, "/portal/checkout", form).want(t, 422, "Entrez un montant de", `href="#`+partial+`"`)
		if strings.Contains(blank.text, "Total de votre choix") {
			t.Errorf("a cart without an amount has a total:\n%s", blank.text)
		}
	}
	// The total follows the amounts without a script, too.
	b.page(http.MethodPost, "/portal/cart", form).want(t, 422, "Entrez un montant de")
	form.Set(partial, "20 000")
	b.page(http.MethodPost, "/portal/cart", form).want(t, 200, `value="20 000"`, `Total de votre choix</span> <strong class="n">35`+narrow+`000`+narrow+`FCFA`, "Recalculer le total")
	paying := b.page(http.MethodPost, "/portal/checkout", form).want(t, 303)
	again := b.page(http.MethodPost, "/portal/checkout", form).want(t, 303) // a double click
	id, _, _ := strings.Cut(strings.TrimPrefix(paying.location, publicURL+"/c/"), "?")
	if again.location != paying.location {
		t.Errorf("a double click leads to %s and %s", paying.location, again.location)
	}
	s := w.Session(id)
	if len(s.Items) != 2 || s.SuccessURL != publicURL+"/portal/payments?lang=fr" || s.CancelURL != publicURL+"/portal?lang=fr" {
		t.Errorf("the session is %+v", s)
	}
	// The dues are in payment, and the account may give the payment up for another cart.
	dues = b.page(http.MethodGet, "/portal", nil).want(t, 200, "Paiement en cours", "Continuer le paiement", "/c/"+id)
	cart = b.page(http.MethodPost, "/portal/cart", url.Values{"due": dues.choices()[:1]}).want(t, 200, "Vous avez déjà commencé à payer")
	paying = b.page(http.MethodPost, "/portal/checkout", cart.form(t, "/portal/checkout")).want(t, 303)
	id, _, _ = strings.Cut(strings.TrimPrefix(paying.location, publicURL+"/c/"), "?")
	s = w.Session(id)
	momo, _ := s.Offer("momo")
	w.pay(id, s.Amount+momo.Fee)
	b.page(http.MethodGet, "/portal", nil).want(t, 200, "Payé, en cours d’enregistrement")
	b.page(http.MethodGet, "/portal/payments", nil).want(t, 200, "Payé, en cours d’enregistrement", "/c/"+id, "Reçu")
	w.recorded(id)
	b.page(http.MethodGet, "/portal/payments?page=x", nil).want(t, 200, "Enregistré par l’administration")

	// The dues that were chosen on an old page are gone.
	b.page(http.MethodPost, "/portal/checkout", cart.form(t, "/portal/checkout"))
	out := b.page(http.MethodPost, "/portal/sign-out", url.Values{}).want(t, 303)
	b.page(http.MethodGet, out.location, nil).want(t, 200, "Vous êtes déconnecté", "Recevoir un code")
	b.page(http.MethodGet, "/portal/payments", nil).want(t, 200, "Recevoir un code")
}

// A session that ends while a citizen fills in the cart keeps the choice and the amounts, and no
// code.
func TestPortalKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	dues := b.page(http.MethodGet, "/portal", nil).want(t, 200)
	cart := b.page(http.MethodPost, "/portal/cart", url.Values{"due": dues.choices()}).want(t, 200)
	form := cart.form(t, "/portal/checkout")
	for name := range form {
		if strings.HasPrefix(name, "amount-") {
			form.Set(name, "33 000")
		}
	}
	w.wait(31 * time.Minute)
	page := b.page(http.MethodPost, "/portal/checkout", form).want(t, 401, "Votre session est terminée", "Ce que vous avez saisi est conservé")
	typed, to := numbered(t, 1)
	form = page.form(t, "/portal/sign-in")
	form.Set("address", typed)
	before := len(w.codes(to))
	page = b.page(http.MethodPost, "/portal/sign-in", form).want(t, 200)
	await.Until(t, "a code is sent", func() bool { return len(w.codes(to)) > before })
	form = page.form(t, "/portal/verify")
	form.Set("code", w.code(to))
	b.page(http.MethodPost, "/portal/verify", form).want(t, 200, "Vérifiez votre choix", `value="33 000"`)

	form = b.page(http.MethodGet, "/portal/references", nil).want(t, 200).form(t, "/portal/references")
	link := b.page(http.MethodPost, "/portal/sign-out", url.Values{}).want(t, 303)
	form.Set("tenant_id", agency)
	form.Set("subject_ref", "TP-1002")
	form.Set("link_code", "SECRETCODE")
	page = b.page(http.MethodPost, "/portal/references", form).want(t, 401)
	if strings.Contains(page.text, "SECRETCODE") || !strings.Contains(page.text, "TP-1002") || link.location == "" {
		t.Errorf("the page is\n%s", page.text)
	}
	// Somebody else signs in on this page.
	typed, to = numbered(t, 2)
	form = page.form(t, "/portal/sign-in")
	form.Set("address", typed)
	page = b.page(http.MethodPost, "/portal/sign-in", form).want(t, 200)
	form = page.form(t, "/portal/verify")
	form.Set("code", w.code(to))
	if next := b.page(http.MethodPost, "/portal/verify", form).want(t, 303); strings.Contains(next.text, "TP-1002") {
		t.Errorf("the next person sees\n%s", next.text)
	}
	// A form that does not say whose it is, is not kept.
	b.page(http.MethodPost, "/portal/sign-out", url.Values{}).want(t, 303)
	page = b.page(http.MethodPost, "/portal/references", url.Values{"tenant_id": {agency}, "subject_ref": {"TP-1002"}}).want(t, 401)
	if strings.Contains(page.text, "TP-1002") || strings.Contains(page.text, "est conservé") {
		t.Errorf("the page is\n%s", page.text)
	}
}

// A page says in plain words what is wrong with an agency's line, what the fee of a payment was,
// and that nothing is known without a reference.
func TestPortalSaysInPlainWords(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	b.page(http.MethodGet, "/portal", nil).want(t, 200, "cela ne veut pas dire que vous ne devez rien")
	b.page(http.MethodGet, "/portal?lang=en", nil).want(t, 200, "this does not mean that you owe nothing")
	b.link(agency, "TP-1004")
	wrong := b.page(http.MethodGet, "/portal", nil).want(t, 200, "Taxe d’enseigne", "À corriger par l’administration\u00a0: le ")
	if strings.Contains(wrong.text, "_minor") {
		t.Errorf("the page names fields of the contract:\n%s", wrong.text)
	}
	cart := b.page(http.MethodPost, "/portal/cart", url.Values{"due": wrong.choices()[:1]}).want(t, 200)
	id, _, _ := strings.Cut(strings.TrimPrefix(b.page(http.MethodPost, "/portal/checkout", cart.form(t, "/portal/checkout")).want(t, 303).location, publicURL+"/c/"), "?")
	s := w.Session(id)
	momo, _ := s.Offer("momo")
	w.pay(id, s.Amount+momo.Fee)
	if b.page(http.MethodGet, "/portal/payments", nil).want(t, 200, "<div>Frais</div>"); momo.Fee == 0 {
		t.Error("the payment has no fee")
	}
}

// A due that changed is shown with both amounts, and the cart goes on with the new one.
func TestPortalShowsChangedDues(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	dues := b.page(http.MethodGet, "/portal", nil).want(t, 200)
	cart := b.page(http.MethodPost, "/portal/cart", url.Values{"due": dues.choices()}).want(t, 200)
	w.control("impots", `{"change": {"TP-1001-C": {"outstanding_minor": 14000}}}`)
	cart = b.page(http.MethodPost, "/portal/checkout", cart.form(t, "/portal/checkout")).want(t, 409,
		"Un montant a changé", "Montant affiché avant", "14"+narrow+"000", "15"+narrow+"000")
	b.page(http.MethodPost, "/portal/checkout", cart.form(t, "/portal/checkout")).want(t, 303)
	w.control("impots", `{"away": true}`)
	w.wait(time.Minute)
	b.page(http.MethodGet, "/portal", nil).want(t, 200, "Sa dernière réponse date du", "Cela ne veut pas dire que vous ne devez rien")
}

// A due with penalties is above its original amount. It is shown with what is more than that,
// and it is paid with them. It was among the dues that cannot be paid.
func TestPortalShowsPenalties(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	w.control("impots", `{"change": {"TP-1001-C": {"outstanding_minor": 18500}}}`)
	dues := b.page(http.MethodGet, "/portal", nil).want(t, 200, "18"+narrow+"500", "soit 3"+narrow+"500", "de plus que le montant initial (pénalités, intérêts)", "sur 150"+narrow+"000")
	b.page(http.MethodGet, "/portal?lang=en", nil).want(t, 200, "18,500", "3,500", "more than the original amount (penalties, interest)")
	cart := b.page(http.MethodPost, "/portal/cart", url.Values{"due": dues.choices()}).want(t, 200, "18"+narrow+"500")
	b.page(http.MethodPost, "/portal/checkout", cart.form(t, "/portal/checkout")).want(t, 303)
	w.control("impots", `{"change": {"TP-1001-A": {"outstanding_minor": 0}}}`)
	w.wait(time.Minute)
	b.page(http.MethodGet, "/portal", nil).want(t, 200, "Montant initial\u00a0:", "50"+narrow+"000")
}

// A cart that is sent again, by a double click or from the page before, leads to its session,
// also when it is paid and the ERP is away. A first one says that the agency does not answer.
func TestPortalRepeatsACart(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	cart := func() url.Values {
		t.Helper()
		dues := b.page(http.MethodGet, "/portal", nil).want(t, 200)
		return b.page(http.MethodPost, "/portal/cart", url.Values{"due": dues.choices()[:1]}).want(t, 200).form(t, "/portal/checkout")
	}
	form := cart()
	first := b.page(http.MethodPost, "/portal/checkout", form).want(t, 303).location
	id, _, _ := strings.Cut(strings.TrimPrefix(first, publicURL+"/c/"), "?")
	s := w.Session(id)
	momo, _ := s.Offer("momo")
	w.pay(id, s.Amount+momo.Fee)
	w.recorded(id)
	later := cart()
	w.control("impots", `{"away": true}`)
	w.wait(time.Minute)
	if again := b.page(http.MethodPost, "/portal/checkout", form).want(t, 303).location; again != first {
		t.Errorf("the cart leads to %s, and sent again to %s", first, again)
	}
	b.page(http.MethodPost, "/portal/checkout", later).want(t, 503, "Ce choix ne peut pas être payé", "L’administration ne répond pas pour le moment. Aucune somme n’a été débitée pour ce choix.")
	w.control("impots", `{"away": false}`)
	b.page(http.MethodPost, "/portal/checkout", later).want(t, 303)
}

// Forms of the portal come from its own pages.
func TestPortalRefusesForeignForms(t *testing.T) {
	t.Parallel()
	_, b := taxpayer(t)
	for _, path := range []string{"/portal/sign-in", "/portal/verify", "/portal/sign-out", "/portal/references", "/portal/references/x/remove", "/portal/references/x/renew", "/portal/cart", "/portal/checkout"} {
		for _, header := range []http.Header{{}, {"Sec-Fetch-Site": {"same-site"}}, {"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example"}}, {"Origin": {"null"}}} {
			foreign := *b
			foreign.header = header
			foreign.page(http.MethodPost, path, url.Values{"address": {"06 600 00 01"}}).want(t, 403)
		}
	}
	b.page(http.MethodGet, "/portal", nil).want(t, 200, "Ce que vous devez")
}

// Co-holders are shown masked, and a holder may ask for a new code or remove the reference.
func TestPortalShowsCoHolders(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	other := w.signedIn(2)
	other.link(agency, "TP-1001")
	page := b.page(http.MethodGet, "/portal/references", nil).want(t, 200, "Autres personnes rattachées", "••")
	if typed, _ := numbered(t, 2); strings.Contains(page.text, typed) {
		t.Error("the page shows the other holder's number")
	}
	action := regexp.MustCompile(`/portal/references/([0-9a-f-]+)/renew`).FindStringSubmatch(page.text)
	if action == nil {
		t.Fatal("no form to ask for a new code")
	}
	if to := b.page(http.MethodPost, action[0], url.Values{}).want(t, 303).location; !strings.Contains(to, "done=renewal") {
		t.Errorf("leads to %s", to)
	}
	other.page(http.MethodPost, "/portal/references/"+action[1]+"/remove", url.Values{}).want(t, 303)
	b.page(http.MethodGet, "/portal/references", nil).want(t, 200, "TP-1001")
	b.page(http.MethodPost, "/portal/references/"+action[1]+"/remove", url.Values{}).want(t, 303)
	b.page(http.MethodPost, "/portal/references/"+action[1]+"/remove", url.Values{}).want(t, 303)
	b.page(http.MethodGet, "/portal?lang=en", nil).want(t, 200, "No reference is linked")
}

// A due in a currency that no means of payment takes could be chosen, and ended in a page that
// said that the agency takes no payment at all. It is shown with the reason, and a form that has it
// all the same is told so.
func TestPortalDueInAnotherCurrency(t *testing.T) {
	t.Parallel()
	_, b := taxpayer(t)
	b.link(agency, "TP-1005")
	dues := b.page(http.MethodGet, "/portal", nil).want(t, 200, "Visa, délivrance à l’étranger", "aucun moyen de paiement n’accepte cette monnaie (EUR)")
	b.page(http.MethodGet, "/portal?lang=en", nil).want(t, 200, "no means of payment takes this currency (EUR)")
	if n := len(dues.choices()); n != 3 {
		t.Errorf("%d dues can be chosen, want the 3 in XAF", n)
	}
	eur, _ := json.Marshal(map[string]any{"t": agency, "s": "TP-1005", "r": "TP-1005-A", "o": 10_000, "c": "EUR"})
	stale := base64.RawURLEncoding.EncodeToString(eur)
	b.page(http.MethodPost, "/portal/cart", url.Values{"due": {stale}}).want(t, 409, "aucun moyen de paiement n’accepte cette monnaie (EUR)")
	b.page(http.MethodPost, "/portal/cart", url.Values{"due": {stale, dues.choices()[0]}}).want(t, 409, "(EUR)", "Vérifiez votre choix", "Total de votre choix")
}

// The service stood above the due's own label, so that all dues of a service began alike.
func TestPortalNamesTheDueFirst(t *testing.T) {
	t.Parallel()
	_, b := taxpayer(t)
	dues := b.page(http.MethodGet, "/portal", nil).want(t, 200)
	b.page(http.MethodPost, "/portal/cart", url.Values{"due": dues.choices()}).want(t, 200, "<strong>Contribution foncière, solde</strong>")
	dues.want(t, 200, "<strong>Contribution foncière, solde</strong>")
}
