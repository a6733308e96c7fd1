package operations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/client"
	"quittance/test/harness"
	"quittance/test/servers"
)

// Every role is a user of its own at a broker with TLS, SCRAM and ACLs, with the rights that
// `quittance acls` prints and no others. A payment, its webhook and its confirmation, an
// operator case and the way of unreadable records to the poison topics need no other right.
func TestRolesWithTheirRights(t *testing.T) {
	t.Parallel()
	k := servers.StartSecureKafka(t)
	binary := servers.QuittanceDev(t)
	printed, err := exec.CommandContext(t.Context(), binary, "acls", "--topic-prefix", harness.Prefix, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var acls []servers.ACL
	if err := json.Unmarshal(printed, &acls); err != nil {
		t.Fatal(err)
	}
	users := map[string]bool{}
	for _, a := range acls {
		if user := strings.TrimPrefix(a.Principal, "User:"); !users[user] {
			users[user] = true
			k.User(t, user)
		}
	}
	k.Allow(t, acls...)

	s := harness.NewStack(t, servers.Dir(t), harness.Shape{Registry: (*harness.Stack).Applications, Ingresses: 1, Processors: 1, Sinks: 1, Kafka: k})
	w := secured{Stack: s, t: t, binary: binary, k: k}
	w.pays()
	w.importsAStatement()
	w.givesBack()
	for _, user := range []string{"ingress", "notify", "operator"} {
		role := user
		if user == "operator" {
			role = "ingress"
		}
		harness.Eventually(t, user+" has sink erp ask the ERPs", func() error { // sixteen agencies beside other suites
			if line := checkOfSink(t, s.Program, role, s.Credentials(t, user)...); !strings.HasPrefix(line, "ok") {
				return errors.New(line)
			}
			return nil
		})
	}
	w.poisons()
	if denied := k.Denied(t); len(denied) > 0 {
		t.Errorf("the broker refused %d requests of roles with their rights, the first: %s", len(denied), denied[0])
	}
	for _, p := range s.Fleet {
		if n := p.Unexpected.Load(); n > 0 {
			t.Errorf("%s has ended by itself %d times: %s", p.Name, n, lastWords(p.LogFile()))
		}
	}
	w.refuses()
}

// lastWords returns the errors with which a process has ended.
func lastWords(file string) (words []string) {
	text, _ := os.ReadFile(file) // without it there is nothing to tell
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "quittance-dev: ") {
			words = append(words, strings.TrimSpace(line))
		}
	}
	return words
}

// secured is a stack on a secure broker.
type secured struct {
	*harness.Stack
	t      *testing.T
	binary string
	k      *servers.SecureKafka
	paid   client.Session
}

// pays pays a session and waits for its webhook, its confirmation and its journal.
func (w *secured) pays() {
	w.t.Helper()
	app := w.Apps[0]
	c := &client.Client{Service: w.Ingress[0], Simulators: w.Simulator, HTTP: &http.Client{
		Timeout: 15 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	answer, err := c.Send(w.t.Context(), http.MethodPost, c.Sessions(""), `{"order_id":"order-1","amount":5000,"description":"Tax","service_code":"tax","metadata":{"erp_due_ref":"DUE-1"}}`,
		"Authorization", "Bearer "+app.Key, "Content-Type", "application/json", "Idempotency-Key", "one")
	if err != nil || answer.Status != http.StatusCreated {
		w.t.Fatalf("creating a session: %d %s %v", answer.Status, answer.Body, err)
	}
	if err := json.Unmarshal(answer.Body, &w.paid); err != nil {
		w.t.Fatal(err)
	}
	if err := c.Citizen(w.paid.ID).Pay(w.t.Context(), "06 600 00 01"); err != nil {
		w.t.Fatal(err)
	}
	for what, path := range map[string]string{"webhook": "/inbox/" + app.ID, "confirmation": "/control/erp/" + app.Slug} {
		harness.Eventually(w.t, "waiting for the "+what, func() error {
			a, err := c.Send(w.t.Context(), http.MethodGet, w.Simulator+path, "")
			if err == nil && !strings.Contains(string(a.Body), w.paid.PaymentRef) && !strings.Contains(string(a.Body), w.paid.ID) {
				err = fmt.Errorf("%s answers %s", path, a.Body)
			}
			return err
		})
	}
	harness.Eventually(w.t, "waiting for the schedule", func() error {
		var delivered int
		err := w.Pool.QueryRow(w.t.Context(), `SELECT count(*) FROM deliveries WHERE state = 'delivered'`).Scan(&delivered)
		if err == nil && delivered < 2 {
			err = fmt.Errorf("%d deliveries are delivered", delivered)
		}
		return err
	})
}

// importsAStatement imports a statement, which needs a transactional id of its own.
func (w *secured) importsAStatement() {
	w.t.Helper()
	file := func(name, text string) string {
		path := filepath.Join(w.t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		return path
	}
	w.run(nil, "", "seed", file("registry.yaml", `agencies: [{id: 018f0000-0000-7000-8000-0000000000f1, slug: releves, name: Relevés, accounts: {test: [{code: airtel, kind: operator, offer: momo_b, number: MER-042, profile: airtel}]}}]`))
	statement := file("airtel.csv", "Transaction ID;Reference;Service;Status;Date;Amount;Charges;Currency;Payer;Merchant;Settlement\nCI260001;;Collection;Transaction Success;20/11/2026 09:00;500;5;XAF;NGOMA;MER-042;\n")
	for _, want := range []string{"accepted", "unchanged"} {
		var got struct{ State string }
		w.run(&got, "", "statements", "import", "--agency", "releves", "--mode", "test", "--account", "airtel", statement, "--json")
		if got.State != want {
			w.t.Errorf("the import is %s, want %s", got.State, want)
		}
	}
}

// givesBack opens a case from the command line; the sink cases carries it out.
func (w *secured) givesBack() {
	w.t.Helper()
	var keys [2]string
	for i, name := range []string{"Ada", "Bea"} {
		var made struct{ Key string }
		w.run(&made, "", "staff", "add", "--name", name, "--json")
		keys[i] = made.Key
	}
	var opened struct{ ID string }
	w.run(&opened, keys[0], "cases", "open", w.paid.ID, "--reason", "wrong taxpayer", "--json")
	harness.Eventually(w.t, "waiting for the case", func() error {
		_, err := w.try(keys[0], "cases", "propose", opened.ID, "refund", "--reason", "by transfer", "--reference", "T-1")
		return err
	})
	w.run(nil, keys[1], "cases", "approve", opened.ID)
	harness.Eventually(w.t, "waiting for the resolution", func() error {
		var is struct{ State string }
		w.run(&is, "", "cases", "show", opened.ID, "--json")
		if is.State != "closed" {
			return fmt.Errorf("the case is %s", is.State)
		}
		return nil
	})
	for _, args := range [][]string{{"secrets", "reseal", "--check"}, {"erase", "--session", w.paid.ID, "--yes"}, {"rebuild", "readmodel", "--yes"}, {"rebuild", "journal", "--yes"}, {"replay", "erp.confirmations", "--to", "erp", "--since", "1h"}, {"replay", "webhooks", "--to", "webhook", "--since", "1h"}} {
		w.run(nil, "", args...)
	}
	if _, err := w.try("", "secrets", "reference-key"); err == nil || !strings.Contains(err.Error(), "there is nothing to make") {
		w.t.Errorf("secrets reference-key, which reads the leased blocks: %v", err)
	}
}

// run runs a command as the operator and decodes what it prints.
func (w *secured) run(into any, key string, args ...string) {
	w.t.Helper()
	out, err := w.try(key, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(out, into); err != nil {
			w.t.Fatalf("%v prints %s: %v", args, out, err)
		}
	}
}

func (w *secured) try(key string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(w.t.Context(), w.binary, append(args, w.Credentials(w.t, "operator")...)...)
	cmd.Env = append(w.Program.Environment(), "QUITTANCE_STAFF_KEY="+key)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", args, err, &stderr)
	}
	return out, err
}

// poisons writes a record that nobody can decode to every topic that a role reads.
func (w *secured) poisons() {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.k.Open))
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	for _, topic := range []string{
		"checkout.commands", "checkout.events", "collections.requests", "webhooks", "webhooks.deliveries", "erp.confirmations", "erp.deliveries", "deliveries.attempts", "collections.calls", "cases.events", "reconciliation.statements",
	} {
		if err := cl.ProduceSync(w.t.Context(), &kgo.Record{Topic: harness.Prefix + topic, Value: []byte("unreadable")}).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
	for topic, want := range map[string]int64{
		"checkout.commands.poison": 1, "collections.requests.poison": 1, "readmodel.poison": 1, "cases.poison": 2, // events of sessions and of cases
		"journal.poison": 5, "deliveries.poison": 6, // events, events of cases, attempts, calls and statements; planners, workers, the schedule and the reporter
	} {
		harness.Eventually(w.t, "waiting for "+topic, func() error {
			ends, err := w.k.Admin.ListCommittedOffsets(w.t.Context(), harness.Prefix+topic)
			if err != nil {
				return err
			}
			if end, _ := ends.Lookup(harness.Prefix+topic, 0); end.Offset < want {
				return fmt.Errorf("%d records, want %d", end.Offset, want)
			}
			return nil
		})
	}
}

// refuses starts roles that lack a right, or that the broker does not know.
func (w *secured) refuses() {
	w.t.Helper()
	lacks := servers.ACL{Principal: "User:quittance-collect", Operation: "Write", ResourceType: "topic", Resource: harness.Prefix + "checkout.commands", Pattern: "literal"}
	w.k.Forbid(w.t, lacks)
	stranger := []string{"--kafka-user", "quittance-collect", "--kafka-password-file", w.k.PasswordFile("quittance-erp")}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append([]string{"sink", "collect"}, w.Credentials(w.t, "collect")...), "User:quittance-collect may not Write topic " + lacks.Resource},
		{append([]string{"processor", "--instance", "0"}, w.Credentials(w.t, "journal")...), "User:quittance-journal may not Read group " + harness.Prefix + "processor; Read topic " + harness.Prefix + "checkout.commands"},
		{append([]string{"processor", "--instance", "0"}, w.Credentials(w.t, "journal")...), "Write transactional-id " + harness.Prefix + "checkout-0"},
		{append([]string{"sink", "collect"}, stranger...), "the broker refuses User:quittance-collect: user or password is wrong"},
	} {
		harness.Eventually(w.t, fmt.Sprintf("starting %v", c.args), func() error {
			ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second) // the broker may not know yet
			defer cancel()
			if err := w.Program.Run(ctx, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				return fmt.Errorf("%w, want %s", err, c.want)
			}
			return nil
		})
	}
}
