package counter

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"quittance/checkout"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/money/language"
	"quittance/money/localtime"
)

// Parameters of the list of a day.
const (
	querySearch = "q"
	queryPage   = "page"
)

const (
	perPage   = 50
	maxSearch = 100 // characters
	maxPages  = 1000
)

// dayWords are the texts of the list of a day.
type dayWords struct {
	Link, Title                          string
	At                                   string // date and time
	Taken, Returned                      string // number of movements
	Net                                  string
	SearchLabel, SearchHint, Search, All string
	Found                                string // number of movements
	None, NothingFound                   string
	Receipt, ReturnedBy                  string // receipt number; clerk
	GivenBack                            string
	GivenBackOf                          string // clerk who took the cash
	Newer, Older                         string
	Print                                string
	Notice, InWords, Place               string
}

var frenchDay = dayWords{
	Link: "Encaissements du jour", Title: "Encaissements du jour", At: "Situation au %s",
	Taken: "Encaissé (%d)", Returned: "Restitué (%d)", Net: "Net du jour",
	SearchLabel: "Rechercher dans la liste", SearchHint: "Référence, avis, numéro de reçu, service ou montant.", Search: "Rechercher", All: "Toute la liste",
	Found: "Mouvements trouvés\u00a0: %d", None: "Aucun encaissement aujourd’hui.", NothingFound: "Aucun mouvement ne correspond à cette recherche.",
	Receipt: "Reçu %s", ReturnedBy: "Restitué par %s", GivenBack: "Restitution", GivenBackOf: "Restitution (encaissé par %s)",
	Newer: "Plus récents", Older: "Plus anciens", Print: "Imprimer",
	Notice: "Numéro d’avis", InWords: "En toutes lettres", Place: "Lieu",
}

var englishDay = dayWords{
	Link: "Cash of today", Title: "Cash of today", At: "As of %s",
	Taken: "Received (%d)", Returned: "Given back (%d)", Net: "Net of the day",
	SearchLabel: "Search the list", SearchHint: "Reference, notice, receipt number, service or amount.", Search: "Search", All: "Whole list",
	Found: "Entries found: %d", None: "No cash today.", NothingFound: "Nothing matches this search.",
	Receipt: "Receipt %s", ReturnedBy: "Given back by %s", GivenBack: "Given back", GivenBackOf: "Given back (received by %s)",
	Newer: "Newer", Older: "Older", Print: "Print",
	Notice: "Notice number", InWords: "In words", Place: "Place",
}

// sum is a line of totals.
type sum struct{ Label, Amount string }

// movement is a row of a list of movements.
type movement struct {
	Time, Ref, RefText, Service, Receipt, Note, Amount string
}

// xaf formats an amount of cash. Counters take nothing but XAF.
func (v visit) xaf(amount int64) string {
	currency, _ := money.Lookup(money.Default)
	return currency.Format(v.Lang, amount)
}

// showDay is GET /counter/day: what the clerk took and gave back today.
func (v visit) showDay() {
	query := v.R.URL.Query()
	search := strings.TrimSpace(query.Get(querySearch))
	if r := []rune(search); len(r) > maxSearch {
		search = string(r[:maxSearch])
	}
	if ref := reference(search); checkout.ValidPaymentRef(ref) {
		search = ref
	}
	at, err := strconv.Atoi(query.Get(queryPage))
	if err != nil || at < 1 || at > maxPages {
		at = 1
	}
	now := v.c.now()
	if err := v.desk.count(v.R.Context(), "look-ups", v.desk.KeyID); err != nil {
		v.refuse(err, "")
		return
	}
	day, err := v.c.cfg.Sessions.Cash(v.R.Context(), sessions.CashFilter{
		AgencyID: v.desk.AgencyID, Live: v.desk.Live, Clerk: v.desk.Code, Day: localtime.Day(now), Search: storable(search), Page: at, PageSize: perPage,
	})
	if err != nil {
		v.unavailable("listing the cash of a day", err, v.w.NothingDone)
		return
	}
	out := v.viewAt("day", v.w.Day.Title)
	out.Script = v.ScriptPath()
	out.Stands = fmt.Sprintf(v.w.Day.At, language.Date(v.Lang, now))
	out.Sums = []sum{
		{fmt.Sprintf(v.w.Day.Taken, day.Taken.Count), v.xaf(day.Taken.Amount)},
		{fmt.Sprintf(v.w.Day.Returned, day.Returned.Count), v.xaf(-day.Returned.Amount)},
		{v.w.Day.Net, v.xaf(day.Taken.Amount - day.Returned.Amount)},
	}
	out.Search = search
	if search != "" {
		out.Found = fmt.Sprintf(v.w.Day.Found, day.Found)
	}
	for _, e := range day.Entries {
		out.Movements = append(out.Movements, v.movement(e))
	}
	if at > 1 {
		out.NewerURL = v.URL("day", querySearch, search, queryPage, strconv.Itoa(at-1))
	}
	if int64(at)*perPage < day.Found {
		out.OlderURL = v.URL("day", querySearch, search, queryPage, strconv.Itoa(at+1))
	}
	v.Write(http.StatusOK, "day", out)
}

// movement describes a movement of cash.
func (v visit) movement(e sessions.CashEntry) movement {
	m := movement{
		Time: language.Clock(e.At), Ref: e.PaymentRef, RefText: language.GroupReference(e.PaymentRef), Service: e.ServiceLabel, Amount: v.xaf(e.Amount),
	}
	if e.Receipt != "" {
		m.Receipt = fmt.Sprintf(v.w.Day.Receipt, e.Receipt)
	}
	switch {
	case e.Kind == checkout.CashReturned:
		m.Amount, m.Note = v.xaf(-e.Amount), v.w.Day.GivenBack
	case e.ReturnedBy != "":
		m.Note = fmt.Sprintf(v.w.Day.ReturnedBy, e.ReturnedBy)
	}
	return m
}

// storable removes what Postgres takes in no text.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}
