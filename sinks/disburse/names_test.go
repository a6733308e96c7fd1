package disburse_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/dev/simulator"
	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
	"quittance/sinks/disburse"
	"quittance/test/approvals"
	"quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/servers"
)

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// replaced is the fingerprint of an account that was replaced: nobody can be asked from it.
const replaced = "f-replaced"

// askNames runs the part of the role that asks MTN, the simulated one, for names.
func askNames(t *testing.T, w *approvals.World, log *logged) {
	t.Helper()
	s, err := simulator.New(simulator.Config{Now: w.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	pays, err := mtn.NewPayouts(connector.Config{Now: w.Now, EnquiriesPerSecond: 100})
	if err != nil {
		t.Fatal(err)
	}
	account := mtn.PayoutAccount{BaseURL: connector.BaseURL(server.URL + "/mtn"), TargetEnvironment: "mtncongo", SubscriptionKey: "key", APIUser: "user", APIKey: "secret"}
	names, err := disburse.NewNames(disburse.NamesConfig{
		Batches: w.Batches, Connectors: map[string]connector.PayoutConnector{mtn.Operator: pays}, Every: 20 * time.Millisecond,
		Account: func(_ string, live bool, code, fingerprint string) (disburse.Account, bool) {
			return disburse.Account{Account: account, Operator: mtn.Operator, Replaced: fingerprint == replaced}, code == "mtn" && !live
		},
		Open: func(ctx context.Context, batch string, position int, sealed []byte) (salt [32]byte, _ digest.Line, err error) {
			content, err := w.Lines.Line(ctx, personal.LineID(batch, position), sealed)
			if err != nil {
				return salt, digest.Line{}, err
			}
			return lines.ParseContent(content)
		},
		Now: w.Now, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- names.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// namedFile is a file of lines of one person, to numbers with these last two digits.
func namedFile(ref string, digits ...string) string {
	out := "line_ref,name,amount,currency,payment_mode,msisdn\n"
	for _, d := range digits {
		out += fmt.Sprintf("%s-%s,MABIALA Awa,1500,XAF,mobile_money,2420660000%s\n", ref, d, d)
	}
	return out
}

// The policy asks for the names of new payees. A batch with one stays a draft until the operator has told them; its maker seals it
// then, or says before why they are not checked. Who approves sees how they compare. Neither rows nor logs have a name or a number.
func TestNamesOfPayees(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	form := strings.Join(approvals.PolicyForm(), "\x00")
	w.Press(t, "Ama", approvals.PeoplePath, approvals.Propose, strings.Split(strings.Replace(form, "name_check\x00off", "name_check\x00new", 1), "\x00")...)
	w.Press(t, "Ben", approvals.PeoplePath, approvals.Confirm)
	w.SignIn(t, 25*time.Hour)
	log := &logged{}
	askNames(t, w, log)
	told := func(b disbursement.Batch, waiting int) disbursements.Names {
		t.Helper()
		var n disbursements.Names
		await.Until(t, "the operator has told the names", func() (ok bool) {
			var err error
			n, err = w.Batches.Names(t.Context(), b.ID)
			return err == nil && n.Count[disbursements.NameWaits] == waiting
		})
		return n
	}
	ama := w.Browsers["Ama"]

	made := w.Import(t, "salaries-1", namedFile("a", "01", "02", "03", "07", "08"), true)
	page := "/agency/batches/" + made.Batch.ID
	n := told(made.Batch, 1)
	for verdict, want := range map[connector.NameVerdict]string{connector.NameMatch: "a-01", connector.NameClose: "a-02", connector.NameDifferent: "a-03", connector.NameUnknown: "a-07", disbursements.NameWaits: "a-08"} {
		if n.Count[verdict] != 1 || n.Refs[verdict][0] != want {
			t.Errorf("%s: %d, %q; want %s", verdict, n.Count[verdict], n.Refs[verdict], want)
		}
	}
	backoffice.Want(t, ama.Get(page), http.StatusOK, `name="names_not_checked"`, "Noms attendus\u00a0: 1", "Nom différent", "a-03", "Nom proche", "a-02")
	backoffice.Want(t, ama.Post(page+"/seal", nil), http.StatusConflict)
	backoffice.Want(t, ama.Post(page+"/seal", map[string][]string{"names_not_checked": {"the operator is silent"}}), http.StatusSeeOther)
	await.Until(t, "it is sealed, and nobody waits for a name", func() bool {
		left, err := w.Batches.NamesOf(t.Context(), made.Batch.ID, 0, 4)
		return err == nil && w.Batch(t, made.Batch.ID).Waiver == "the operator is silent" && len(left) == 4 && left[2] == connector.NameDifferent
	})
	backoffice.Want(t, w.Browsers["Ben"].Get(page), http.StatusOK, "the operator is silent", "Nom différent", "a-03")
	backoffice.Lacks(t, w.Browsers["Rita"].Get(page), "Nom différent", "a-03")

	// Whom a sealed batch names is not known by it: its maker may have said why names were not checked.
	if again := w.Import(t, "salaries-0", namedFile("z", "01", "02"), true); again.Notes.Names.Lines != 2 {
		t.Errorf("people whom nobody has paid: %+v", again.Notes.Names)
	}
	// Those of the first batch are paid, and known under their names. A batch without new payees is sealed at once, and one whose names
	// are told without a reason.
	w.Exec(t, `UPDATE disbursement_lines SET status = 'paid' WHERE batch = $1`, made.Batch.ID)
	if other := w.Import(t, "salaries-9", strings.ReplaceAll(namedFile("y", "01"), "MABIALA Awa", "OKEMBA Brice"), true); other.Notes.Names.Lines != 1 || other.Notes.Warnings[lines.WarnName] != 1 {
		t.Errorf("a known number with another name: %+v, %v", other.Notes.Names, other.Notes.Warnings)
	}
	if known := w.Import(t, "salaries-2", namedFile("b", "01", "02"), false); known.Draft || known.Notes.Names.Lines != 0 || known.Batch.Status != disbursement.StatusSealed {
		t.Errorf("known payees: %+v", known.Batch.Status)
	}
	made = w.Import(t, "salaries-3", namedFile("c", "01", "04", "05"), true)
	page = "/agency/batches/" + made.Batch.ID
	if n = told(made.Batch, 0); n.Count[connector.NameMatch] != 2 || n.Asked.Check != policy.CheckNew || n.Asked.Lines != 2 {
		t.Errorf("of one known and two new payees: %+v", n)
	}
	backoffice.Lacks(t, ama.Get(page), `name="names_not_checked"`)
	backoffice.Want(t, ama.Post(page+"/seal", nil), http.StatusSeeOther)
	w.Shows(t, w.Batch(t, made.Batch.ID).Batch)
	await.Until(t, "it is sealed", func() bool { return w.Batch(t, made.Batch.ID).Status == disbursement.StatusSealed })

	// Nobody can be asked for the names of a draft whose account was replaced. Those of a later draft are told all the same.
	old := w.Import(t, "salaries-7", namedFile("o", "01", "02", "03", "04", "05"), true)
	w.Exec(t, `UPDATE disbursement_names SET fingerprint = $2, verdict = 'waiting', again_at = '2000-01-01Z' WHERE batch = $1`, old.Batch.ID, replaced)
	told(w.Import(t, "salaries-8", namedFile("n", "04"), true).Batch, 0)
	if n, err := w.Batches.Names(t.Context(), old.Batch.ID); err != nil || n.Count[disbursements.NameWaits] != n.Asked.Lines {
		t.Errorf("of the replaced account: %+v, %v", n, err)
	}

	var rows string
	if err := w.Pool.QueryRow(t.Context(), `SELECT string_agg(n::text, ' ') FROM disbursement_names n`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{rows, log.String()} {
		if found := regexp.MustCompile(`(?i)mabiala|okemba|christelle|0?66 ?0000`).FindString(text); found != "" {
			t.Errorf("%q is in %s", found, text)
		}
	}
}
