package journeys_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/dev/stack/program"
	"quittance/test/harness"
)

// shown is what journeys.mjs says of a page.
type shown struct {
	Tab    int               `json:"tab"`
	Step   string            `json:"step"`
	Lang   string            `json:"lang"`
	Title  string            `json:"title"`
	Text   string            `json:"text"`
	List   map[string]string `json:"list"`
	Errors []string          `json:"errors"`
	Focus  string            `json:"focus"`
	Offers []string          `json:"offers"`
	Links  []string          `json:"links"`
	Forms  []string          `json:"forms"`
	Test   bool              `json:"test"`
}

// The ways to the checkout.
const (
	withScript = "with a script"
	without    = "without"
	embedded   = "embedded"
)

// journeyOf is a visitor by one of the ways.
type journeyOf struct {
	visitor
	way    string
	lang   string
	made   harness.Session
	seen   []shown
	faults []string
}

// Citizens pay by every offer, with every outcome, on the hosted page with a
// script and without, and in the shop's frame, and do what citizens do; meanwhile
// the shop's page learns nothing of it and nothing that is secret is logged.
func TestJourneys(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and a browser")
	}
	t.Parallel()
	u := harness.NewUp(t, "--log", "debug")
	u.Registry = harness.WithoutQuota(t, u.Dir)
	u.Start(t)

	rows := slices.Concat(byPhone("momo"), byPhone("momo_b"), byCard(), byCash(), otherwise())
	var journeys []*journeyOf
	byName := map[string]*journeyOf{}
	for i, v := range rows {
		for n, way := range []string{withScript, without, embedded} {
			j := &journeyOf{visitor: v, way: way, lang: "fr"}
			if (i+n)%2 == 0 { // so that each way is seen in both languages
				j.lang = "en"
			}
			j.name += " " + way
			switch {
			case way == embedded && v.hosted:
				continue
			case way == embedded:
				j.pages = cmp.Or(v.embedded, v.pages)
				if v.offer == "card" {
					j.other = "bank"
				}
			case way == without:
				j.pages = cmp.Or(v.noScript, v.pages)
			}
			if v.status != "" && way != embedded {
				j.made = hosted(t, u, fmt.Sprintf("hosted-%d-%d", i, n), v)
			}
			journeys, byName[j.name] = append(journeys, j), j
		}
	}
	var tasks []map[string]any
	for _, j := range journeys {
		task := map[string]any{
			"name": j.name, "scenario": cmp.Or(j.scenario, "pay"), "offer": cmp.Or(j.offer, "momo"), "answers": j.answers,
			"at": j.at, "decision": j.decision, "clock": j.clock, "script": j.way != without, "lang": j.lang,
			"url": j.made.CheckoutURL, "id": j.made.ID, "ref": j.made.PaymentRef, "order": j.made.OrderID,
		}
		if j.url != "" {
			task["url"] = u.URL(harness.AtService, j.url)
		}
		if j.way == embedded {
			task["frame"] = frameOf(j, len(tasks))
		}
		tasks = append(tasks, task)
	}
	begun := time.Now()
	harness.Browse(t, 20*time.Minute, "journeys.mjs", map[string]any{
		"api": u.Sessions(""), "key": harness.GuichetKey, "control": u.URL(harness.AtSimulators, "/control"), "rows": tasks,
		"shop": "https://" + program.Local(u.Port+atShop),
		// A phone's window of five minutes and its grace; a card's of fifteen; what the
		// operators say afterwards; the lifetime of a session.
		"clock": []string{"5m6s", "15m6s", "20m", "24h"},
	}, func(line []byte) {
		var told struct {
			Row     string   `json:"row"`
			Session string   `json:"session"`
			Seen    []shown  `json:"seen"`
			Faults  []string `json:"faults"`
		}
		if err := json.Unmarshal(line, &told); err != nil || byName[told.Row] == nil {
			t.Fatalf("the browser's %q: %v", line, err)
		}
		j := byName[told.Row]
		j.seen, j.faults = told.Seen, told.Faults
		if j.way == embedded && told.Session != "" {
			j.made = u.Session(t, told.Session)
		}
	})
	t.Logf("%d journeys in %v", len(journeys), time.Since(begun).Round(time.Second))
	for _, j := range journeys {
		t.Run(j.name, func(t *testing.T) { checkJourney(t, u, j) })
	}
	t.Run("the acquirer is asked once for each", func(t *testing.T) { acquired(t, u, journeys) })
	u.End(30 * time.Second)
	t.Run("nothing secret is logged", func(t *testing.T) { logsNoSecret(t, u, journeys) })
}

// frameOf is how the shop's page is asked for, and how it must end.
func frameOf(j *journeyOf, n int) map[string]string {
	frame := map[string]string{"notice": "vignette", "layout": []string{"large", "compact"}[n%2], "ends": "over"}
	if j.euros {
		frame["notice"] = "visa"
	}
	if j.status == "completed" {
		frame["ends"] = "unlocked"
	}
	return frame
}

// hosted makes a visitor's session, which knows the way back.
func hosted(t *testing.T, u *harness.Up, order string, v visitor) harness.Session {
	t.Helper()
	key, amount, currency := harness.GuichetKey, 5000, "XAF"
	if v.live {
		key = harness.GuichetLiveKey
	}
	if v.euros {
		amount, currency = 6000, "EUR"
	}
	return u.CreateFrom(t, key, fmt.Sprintf(`{"order_id":%q,"amount":%d,"currency":%q,"description":"Patente 2026","service_code":"patente","success_url":%q,"cancel_url":%q}`,
		order, amount, currency, successURL, cancelURL))
}

const (
	successURL = "https://guichet.example/merci"
	cancelURL  = "https://guichet.example/retour"
)

// checkJourney holds what a visitor saw, and what is known afterwards, against
// the table.
func checkJourney(t *testing.T, u *harness.Up, j *journeyOf) {
	for _, fault := range j.faults {
		t.Errorf("in the browser: %s", fault)
	}
	for tab, want := range []string{j.pages, j.other} {
		var pages []string
		for _, s := range j.seen {
			if s.Tab != tab {
				continue
			}
			page := called(s.Title, s.Lang)
			if page == "" {
				t.Errorf("no page is called %q in %s", s.Title, s.Lang)
			}
			if len(pages) == 0 || pages[len(pages)-1] != page {
				pages = append(pages, page)
			}
			if page != "unknown" {
				checkShown(t, j, page, s)
			}
		}
		if !follows(pages, strings.Fields(want)) {
			t.Errorf("tab %d showed %q, want %q", tab, strings.Join(pages, " "), want)
		}
	}
	if j.check != nil {
		j.check(t, j.visitor, j.seen)
	}
	if j.status != "" {
		checkKnown(t, u, j)
	}
}

// follows says whether pages are those wanted.
func follows(pages, want []string) bool {
	for _, w := range want {
		w, missable := strings.CutSuffix(w, "?")
		switch {
		case len(pages) > 0 && pages[0] == w:
			pages = pages[1:]
		case !missable:
			return false
		}
	}
	return len(pages) == 0
}

// listWords are the names of what a page lists.
type listWords struct{ due, fee, total, ref, offer string }

var wordsOf = map[string]listWords{
	"fr": {"Montant dû", "Frais de service", "Total", "Référence de paiement", "Moyen de paiement"},
	"en": {"Amount due", "Service fee", "Total", "Payment reference", "Means of payment"},
}

// amounts are what a visitor owes and pays, as a page writes it.
func (v visitor) amounts(lang, offer string) (due, fee, total string) {
	phone := strings.Contains(offer, "Money")
	switch {
	case v.euros && lang == "fr":
		return "60,00 €", "1,80 €", "61,80 €"
	case v.euros:
		return "€60.00", "€1.80", "€61.80"
	case phone && lang == "fr":
		return "5 000 FCFA", "75 FCFA", "5 075 FCFA"
	case phone:
		return "FCFA 5,000", "FCFA 75", "FCFA 5,075"
	case lang == "fr":
		return "5 000 FCFA", "0 FCFA", "5 000 FCFA"
	}
	return "FCFA 5,000", "FCFA 0", "FCFA 5,000"
}

// checkShown: amounts wherever they count, a way on that fits, and no other.
func checkShown(t *testing.T, j *journeyOf, page string, s shown) {
	t.Helper()
	words := wordsOf[s.Lang]
	due, fee, total := j.amounts(s.Lang, s.List[words.offer])
	if page == "bank" {
		if !strings.Contains(s.Text, total) {
			t.Errorf("the bank does not ask for %s: %s", total, s.Text)
		}
		return
	}
	if s.Lang != j.lang && j.scenario != "languages" {
		t.Errorf("page %s is in %q", page, s.Lang)
	}
	if !s.Test && !j.live {
		t.Errorf("page %s of a test session does not say so", page)
	}
	switch page {
	case "review", "cash", "waiting", "bankwait", "counter", "completed":
		for what, amount := range map[string]string{words.due: due, words.fee: fee, words.total: total} {
			if got := s.List[what]; got != amount {
				t.Errorf("page %s shows %s as %q, want %q", page, what, got, amount)
			}
		}
	case "choose", "phone", "none", "failed", "expired", "cancelled":
		if !strings.Contains(s.Text, due) {
			t.Errorf("page %s does not show %s: %q", page, due, s.Text)
		}
	}
	switch page {
	case "choose":
		if !slices.Equal(s.Offers, hostedOffers) {
			t.Errorf("offered are %q, want %q", s.Offers, hostedOffers)
		}
	case "phone":
		if !slices.Equal(s.Offers, hostedOffers[:2]) {
			t.Errorf("operators to choose from are %q, want %q", s.Offers, hostedOffers[:2])
		}
	case "cash":
		if ref := j.made.PaymentRef; len(ref) != 16 || !strings.Contains(s.Text, strings.Join([]string{ref[:4], ref[4:8], ref[8:12], ref[12:]}, " ")) {
			t.Errorf("the reference %s for the counter is not on its page: %s", ref, s.Text)
		}
	case "completed":
		ref := strings.ReplaceAll(s.List[words.ref], " ", "")
		wayOn := successURL
		if j.way == embedded { // the receipt of its own opens beside the shop's page
			wayOn = "/c/" + j.made.ID + "?lang=" + s.Lang
		}
		if s.Tab == 0 && (ref != j.made.PaymentRef || !slices.Contains(s.Links, wayOn)) {
			t.Errorf("the receipt has the reference %q and the links %q", ref, s.Links)
		}
		if want := offerNames[cmp.Or(j.offer, "momo")][s.Lang]; j.check == nil && j.scenario != "counterGivesUp" && s.List[words.offer] != want {
			t.Errorf("paid by %q, want %q", s.List[words.offer], want)
		}
	case "failed":
		if said := refusalWords[j.failure][s.Lang]; said == "" || !strings.Contains(s.Text, said) {
			t.Errorf("a refusal for %s reads %q", j.failure, s.Text)
		}
		if j.way != embedded && !slices.Contains(s.Links, cancelURL) {
			t.Errorf("no way to start again: %q", s.Links)
		}
	case "undecided", "late", "mismatched", "settled":
		for _, link := range s.Links {
			if !strings.Contains(link, "/"+j.made.ID+"?") || page != "undecided" {
				t.Errorf("page %s leads to %s, where one might pay again", page, link)
			}
		}
	}
	if !slices.Equal(s.Forms, formsOf[page]) {
		t.Errorf("page %s has the forms %q, want %q", page, s.Forms, formsOf[page])
	}
}

// checkKnown: the API, the integrator and the operator have the same outcome.
func checkKnown(t *testing.T, u *harness.Up, j *journeyOf) {
	s := j.made
	if j.live {
		a := u.Call(t, http.MethodGet, u.Sessions("/"+s.ID), "", "Authorization", "Bearer "+harness.GuichetLiveKey)
		a.Into(t, &s)
	} else {
		s = u.Becomes(t, s.ID, j.status)
	}
	if s.Status != j.status || s.Paid != (j.status == "completed") {
		t.Errorf("the session is %+v, want it %s", s, j.status)
	}
	if j.event != "" {
		u.Delivered(t, s.ID, j.event)
	}
	if j.late {
		u.Delivered(t, s.ID, "checkout.late_payment")
	}
	want := map[string]int{}
	if j.event != "" {
		want[j.event] = 1
	}
	if j.late {
		want["checkout.late_payment"] = 1
	}
	got := map[string]int{}
	for _, m := range u.Inbox(t, s.ID) {
		got[m.Event.Event]++
		var body struct {
			Failure string `json:"failure_code"`
		}
		if err := json.Unmarshal([]byte(m.Body), &body); err != nil || m.Event.Event == "checkout.failed" && body.Failure != j.failure {
			t.Errorf("%s tells %q, want %q (%v)", m.Event.Event, body.Failure, j.failure, err)
		}
		if m.SignatureValid == nil || !*m.SignatureValid {
			t.Errorf("signature of %s is not valid", m.Event.Event)
		}
	}
	for event, n := range want {
		if got[event] != n {
			t.Errorf("the inbox has %v, want %v", got, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the inbox has %v, want %v", got, want)
	}
	collections := u.Collections(t, s)
	if len(collections) != j.collect {
		t.Errorf("the operators have %+v, want %d", collections, j.collect)
	}
	for _, c := range collections {
		total := "5075"
		if c.Operator == "counter" {
			total = "5000" // cash has no fee
		}
		if c.Amount != total {
			t.Errorf("%s was asked for %s, want %s", c.Operator, c.Amount, total)
		}
	}
}

// acquired: the acquirer knows nothing of a session's reference, so that its
// collections are counted.
func acquired(t *testing.T, u *harness.Up, journeys []*journeyOf) {
	want := 0
	for _, j := range journeys {
		if j.offer == "card" {
			want++
		}
	}
	var all []harness.Collection
	u.Call(t, http.MethodGet, u.URL(harness.AtSimulators, "/control/collections?operator=card"), "").Into(t, &all)
	if len(all) != want {
		t.Errorf("the acquirer has %d collections, want %d", len(all), want)
	}
	for _, c := range all {
		if c.Amount != "6180" {
			t.Errorf("the acquirer was asked for %s", c.Amount)
		}
	}
}

// logsNoSecret: no key, token or phone number is in what the program logged.
func logsNoSecret(t *testing.T, u *harness.Up, journeys []*journeyOf) {
	log, err := os.ReadFile(u.Stderr())
	if err != nil {
		t.Fatal(err)
	}
	const between = `(?:[\s.+-]|%20|%2B|%C2%A0|\\u00a0)*`
	patterns := []string{`sk_(?:test|live)_\w`, `cpt_\w`, `whsec_\w`, `_secret_\w`}
	for _, secret := range harness.PublishedSecrets(t) {
		patterns = append(patterns, regexp.QuoteMeta(secret))
	}
	// Whatever the spelling: the last eight digits of a number that was used.
	for _, j := range journeys {
		for _, answer := range j.answers {
			digits := regexp.MustCompile(`\D`).ReplaceAllString(answer, "")
			if len(digits) < 9 {
				continue
			}
			patterns = append(patterns, strings.Join(strings.Split(digits[len(digits)-8:], ""), between))
		}
	}
	slices.Sort(patterns)
	for _, pattern := range slices.Compact(patterns) {
		if at := regexp.MustCompile(pattern).FindIndex(log); at != nil {
			t.Errorf("the log has what matches %s: …%s…", pattern, log[max(0, at[0]-200):min(len(log), at[1]+50)])
		}
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("level=ERROR")) {
			t.Errorf("an error: %s", line)
		}
	}
}
