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
	"sync"
	"testing"
	"time"

	"quittance/dev/stack/program"
	"quittance/test/harness"
)

// shown is a page as journeys.mjs reports it.
type shown struct {
	Tab    int               `json:"tab"`
	After  int               `json:"after"` // milliseconds since the payer could decide; 0 before
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

// journeyOf is a visitor on one of the ways.
type journeyOf struct {
	visitor
	way    string
	lang   string
	made   harness.Session
	due    string // its due, if it is one of the citizen portal
	seen   []shown
	faults []string
	played bool // the browser has reported it
}

// failures holds a short line for each failed journey. TestMain prints them last, where
// no output of the service follows.
var failures struct {
	sync.Mutex
	lines []string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if n := len(failures.lines); n > 0 {
		fmt.Fprintf(os.Stderr, "\n%d journeys failed (QUITTANCE_JOURNEYS=PATTERN runs some of them):\n", n)
		for _, line := range failures.lines[:min(n, 12)] {
			fmt.Fprintln(os.Stderr, "  "+line)
		}
	}
	os.Exit(code)
}

// failed notes a journey for the summary, with the first of its faults.
func failed(journey, fault string) {
	failures.Lock()
	defer failures.Unlock()
	failures.lines = append(failures.lines, fmt.Sprintf("%s: %.400s", journey, fault))
}

// Citizens pay by every offer and see every outcome: on the hosted page with a script,
// without a script, and in the shop's frame. The page around the frame gets no
// data of the payment, and the log has no secret. Each outcome of an offer is seen on one of the
// three ways, and each way shows every third outcome. With QUITTANCE_JOURNEYS, a pattern of the
// names of journeys, these journeys run on every way; `make test/journeys` runs all.
func TestJourneys(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and a browser")
	}
	t.Parallel()
	u := harness.NewUp(t, "--log", "debug")
	u.Registry = harness.WithoutQuota(t, u.Dir)
	u.Start(t)

	pattern, chosen := os.LookupEnv("QUITTANCE_JOURNEYS")
	only := regexp.MustCompile(pattern)
	offers := [][]visitor{byPhone("momo"), byPhone("momo_b"), byCard(), byCash(), bySwitch()}
	ways := []string{withScript, without, embedded}
	for n, outcomes := range offers {
		for i := range outcomes {
			outcomes[i].only = ways[(i+n)%len(ways)] // the two operators take different ways to the same outcome
		}
	}
	rows := slices.Concat(slices.Concat(offers...), otherwise(), changes())
	fromPortal := openCarts(t, u)
	var journeys []*journeyOf
	byName := map[string]*journeyOf{}
	for i, v := range rows {
		for n, way := range ways {
			j := &journeyOf{visitor: v, way: way, lang: "fr"}
			if (i+n)%2 == 0 { // each way is seen in both languages
				j.lang = "en"
			}
			j.name += " " + way
			switch {
			case way == embedded && v.hosted, !only.MatchString(j.name), !chosen && v.only != "" && way != v.only:
				continue
			case way == embedded:
				j.pages = cmp.Or(v.embedded, v.pages)
				if v.offer == "card" {
					j.other = "bank"
				}
			case way == without:
				j.pages = cmp.Or(v.noScript, v.pages)
			}
			if v.portal {
				j.made, j.due = fromPortal.cart(t)
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
		if j.due != "" {
			task["due"], task["change"] = j.due, json.RawMessage(j.change)
		}
		if j.way == embedded {
			task["frame"] = frameOf(j, len(tasks))
		}
		tasks = append(tasks, task)
	}
	begun := time.Now()
	t.Cleanup(func() {
		for _, j := range journeys {
			if !j.played {
				failed(j.name, "the browser reported nothing of it")
			}
		}
	})
	harness.Browse(t, 20*time.Minute, "journeys.mjs", map[string]any{
		"api": u.Sessions(""), "key": harness.GuichetKey, "control": u.URL(harness.AtSimulators, "/control"), "rows": tasks,
		"shop": "https://" + program.Local(u.Port+atShop),
		// The window of a phone, five minutes, and its grace; that of a card, fifteen; late
		// answers of operators; the lifetime of a session.
		"clock": []string{"5m6s", "15m6s", "20m", "120h"},
	}, func(line []byte) {
		var result struct {
			Progress string   `json:"progress"`
			Row      string   `json:"row"`
			Session  string   `json:"session"`
			Seen     []shown  `json:"seen"`
			Faults   []string `json:"faults"`
		}
		if err := json.Unmarshal(line, &result); err != nil || result.Progress == "" && byName[result.Row] == nil {
			t.Fatalf("the browser's line %q: %v", line, err)
		}
		if result.Progress != "" {
			t.Log(result.Progress)
			return
		}
		j := byName[result.Row]
		j.seen, j.faults, j.played = result.Seen, result.Faults, true
		if len(j.faults) > 0 {
			failed(j.name, j.faults[0])
		}
		if j.way == embedded && result.Session != "" {
			j.made = u.Session(t, result.Session)
		}
	})
	t.Logf("%d journeys in %v", len(journeys), time.Since(begun).Round(time.Second))
	for _, j := range journeys {
		if !t.Run(j.name, func(t *testing.T) { checkJourney(t, u, j) }) && len(j.faults) == 0 {
			failed(j.name, "the pages or the outcome differ from the table, see its output above")
		}
	}
	t.Run("the acquirer is asked once for each", func(t *testing.T) { acquired(t, u, journeys) })
	u.End(30 * time.Second)
	t.Run("nothing secret is logged", func(t *testing.T) { logsNoSecret(t, u, journeys) })
}

// frameOf returns the parameters of the shop's page and the state in which it must end.
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

// hosted creates a visitor's session, with the addresses of the way back.
func hosted(t *testing.T, u *harness.Up, order string, v visitor) harness.Session {
	t.Helper()
	key, amount, currency := harness.GuichetKey, 5000, "XAF"
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

// checkJourney compares what a visitor saw, and what the systems know afterwards, with
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
		if j.slow(tab) {
			t.Logf("the browser showed the page after the confirmation later than %v, so that the outcome may have come first", decides)
			want = strings.NewReplacer("waiting completed", "waiting? completed", "bankwait completed", "bankwait? completed").Replace(want)
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

// decides is the shortest time until a decision in the rows that must show the waiting page
// (magic numbers 02, 08 and 12).
const decides = 5 * time.Second

// slow reports whether the browser showed the page after the confirmation later than that.
// Then the decision may have come before the waiting page.
func (j *journeyOf) slow(tab int) bool {
	i := slices.IndexFunc(j.seen, func(s shown) bool { return s.Tab == tab && s.After > 0 })
	return j.scenario == "" && i >= 0 && time.Duration(j.seen[i].After)*time.Millisecond > decides
}

// follows reports whether pages are those wanted. A page with a question mark may be
// missing.
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

// amounts returns what a visitor owes and pays, as a page writes it.
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

// checkShown checks a page: its amounts, its links and its forms.
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
	if !s.Test {
		t.Errorf("page %s of a test session does not say so", page)
	}
	switch page {
	case "review", "cash", "waiting", "bankwait", "counter", "completed":
		for what, amount := range map[string]string{words.due: due, words.fee: fee, words.total: total} {
			if got := s.List[what]; got != amount {
				t.Errorf("page %s shows %s as %q, want %q", page, what, got, amount)
			}
		}
	case "choose", "phone", "none", "question", "failed", "expired", "cancelled":
		if page == "cancelled" && j.portal {
			if strings.Contains(s.Text, due) { // it is no longer what is owed
				t.Errorf("page %s shows %s: %q", page, due, s.Text)
			}
		} else if !strings.Contains(s.Text, due) {
			t.Errorf("page %s does not show %s: %q", page, due, s.Text)
		}
	}
	switch page {
	case "choose":
		want := hostedOffers
		if j.portal {
			want = portalOffers
		}
		if !slices.Equal(s.Offers, want) {
			t.Errorf("offered are %q, want %q", s.Offers, want)
		}
	case "phone":
		if len(s.Offers) > 0 {
			t.Errorf("the operator is asked for again: %q", s.Offers)
		}
	case "cash":
		if ref := j.made.PaymentRef; len(ref) != 16 || !strings.Contains(s.Text, strings.Join([]string{ref[:4], ref[4:8], ref[8:12], ref[12:]}, " ")) {
			t.Errorf("page %s does not show the reference %s for the counter: %s", page, ref, s.Text)
		}
	case "completed":
		ref := strings.ReplaceAll(s.List[words.ref], " ", "")
		wayOn := successURL
		if j.way == embedded { // the receipt opens in a tab beside the shop's page
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
			t.Errorf("page %s has the links %q, want %s to start again", page, s.Links, cancelURL)
		}
	case "undecided", "late", "mismatched", "settled":
		for _, link := range s.Links {
			contact := strings.HasPrefix(link, "tel:") || strings.HasPrefix(link, "mailto:")
			if !contact && (!strings.Contains(link, "/"+j.made.ID+"?") || page != "undecided") {
				t.Errorf("page %s has a link to %s, where the citizen could pay again", page, link)
			}
		}
	}
	forms := s.Forms
	if page == "completed" { // the receipt is sent, to an address, and to the payer's number if there was one
		forms = slices.DeleteFunc(slices.Clone(forms), func(f string) bool { return f == "send" })
	}
	if len(forms)+len(formsOf[page]) > 0 && !slices.Equal(forms, formsOf[page]) {
		t.Errorf("page %s has the forms %q, want %q", page, s.Forms, formsOf[page])
	}
}

// checkKnown checks that the API, the integrator and the operator have the same outcome.
func checkKnown(t *testing.T, u *harness.Up, j *journeyOf) {
	s := j.made
	s = u.Becomes(t, s.ID, j.status)
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
			t.Errorf("%s has the failure code %q, want %q (%v)", m.Event.Event, body.Failure, j.failure, err)
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
		if c.Operator == "counter" || c.Operator == "switch" {
			total = "5000" // the demo agency has no fee for them
		}
		if c.Amount != total {
			t.Errorf("%s was asked for %s, want %s", c.Operator, c.Amount, total)
		}
	}
}

// acquired counts the acquirer's collections: the acquirer does not know a session's
// reference.
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

// logsNoSecret checks that the program has logged no key, token or phone number.
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
	// The last eight digits of each number that was used, in every spelling.
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
			t.Errorf("the log has a match of %s: …%s…", pattern, log[max(0, at[0]-200):min(len(log), at[1]+50)])
		}
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("level=ERROR")) {
			t.Errorf("the log has an error: %s", line)
		}
	}
}
