package production

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"quittance/dev/stack/program"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/test/harness"
	"quittance/test/servers"
)

// The drill "master key rotated and the old one retired", on an installation that began
// before it had a reference key. The oldest master key could never be removed, because
// references were made with it, and nothing told when a replaced key was needed no more.
func TestMasterKeyIsRetired(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	old, newest := i.keys, secret.GenerateKeys()
	both := newest.Reveal() + "," + old.Reveal()
	i.succeeds(t, i.path, "seed", i.file(t, strings.Replace(registry, "offers: [momo]", "offers: [momo]\n        embed_origins: [\"https://guichet.example\"]", 1)))
	dev := servers.QuittanceDev(t)
	i.succeeds(t, dev, "seed", "--port", "0", i.file(t, account))
	if _, err := i.pool.Exec(t.Context(), `INSERT INTO reference_counters (name, next) VALUES ('key', $1)`, sessions.KeyFingerprint(old.FormerPermutations()[0])); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := i.run(t, i.path, i.as(t, "ingress", "--checkout-url", public)...); code != 1 || !strings.Contains(stderr, "make it with `quittance secrets reference-key`") {
		t.Fatalf("with another reference key ingress ends with %d and prints %s", code, stderr)
	}
	if _, stderr, code := i.run(t, i.path, "secrets", "reference-key", "--master-keys", newest.Reveal()); code != 1 || !strings.Contains(stderr, "add the master key with which the installation began") {
		t.Errorf("without the old master key reference-key ends with %d and prints %s", code, stderr)
	}
	reference := strings.TrimSpace(i.succeeds(t, i.path, "secrets", "reference-key"))
	if _, stderr, code := i.run(t, i.path, "secrets", "reference-key", "--reference-key", reference); code != 1 || !strings.Contains(stderr, "there is nothing to make") {
		t.Errorf("with the reference key reference-key ends with %d and prints %s", code, stderr)
	}

	var key struct{ Secret string }
	if err := json.Unmarshal([]byte(i.succeeds(t, i.path, "keys", "create", "--application", application, "--mode", "test", "--json")), &key); err != nil {
		t.Fatal(err)
	}
	ports := harness.Ports(t, 3)
	service := program.Local(ports[2])
	start := func(name, health string, args ...string) *program.Process {
		t.Helper()
		p := i.of(t, roleOf(args)).Process(name, health, i.as(t, args...)...)
		t.Cleanup(p.Quit)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startWithin)
		defer cancel()
		if err := program.AwaitReady(ctx, p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	derived := func(role, keys string) string {
		return i.succeeds(t, i.path, "secrets", "derive", role, "--master-keys", keys)
	}
	// It knows the new key before anybody uses it.
	start("processor", program.Local(ports[0]), "processor", "--instance", "0", "--master-keys", derived("checkout", old.Reveal()+","+newest.Reveal()))
	ingress := func(keys string) *program.Process {
		t.Helper()
		return start("ingress", program.Local(ports[1]), "ingress", "--listen", service, "--checkout-url", public, "--reference-key", reference,
			"--master-keys", derived("ingress", keys))
	}
	type session struct {
		ID         string `json:"id"`
		PaymentRef string `json:"payment_ref"`
	}
	url := "http://" + service + "/api/v1/checkout/sessions"
	create := func(order string) (s session) {
		t.Helper()
		status, text := call(t, http.MethodPost, url, key.Secret, `{"order_id":"`+order+`","amount":5000,"description":"Patente","service_code":"patente","mode":"embedded"}`)
		if err := json.Unmarshal(text, &s); status != http.StatusCreated || err != nil {
			t.Fatalf("creating %s answers %d %s", order, status, text)
		}
		return s
	}
	check := func(keys string, code int, want ...string) {
		t.Helper()
		stdout, stderr, ended := i.run(t, i.path, "secrets", "reseal", "--check", "--master-keys", keys)
		for _, w := range want {
			if !strings.Contains(stdout+stderr, w) {
				t.Errorf("--check lacks %q", w)
			}
		}
		if ended != code || t.Failed() {
			t.Fatalf("--check ends with %d, want %d: %s%s", ended, code, stdout, stderr)
		}
	}

	p := ingress(old.Reveal())
	first := create("order-1")
	p.Quit()
	p = ingress(both)
	second := create("order-2")
	check(both, 1, "connector_accounts (1), connector_accounts (reports) (1), receipt_keys (2), signatures of rows (", "), webhook_secrets (1), open sessions (1, the last expires at", "`quittance secrets reseal` seals", "still needed")

	if _, stderr, code := i.run(t, i.path, "secrets", "reseal", "--master-keys", both); code != 2 || !strings.Contains(stderr, "restart all of them with the new list") {
		t.Errorf("without an answer reseal ends with %d and prints %s", code, stderr)
	}
	if counts := i.succeeds(t, i.path, "secrets", "reseal", "--master-keys", both, "--yes", "--json"); strings.Count(counts, `"sealed": 1,`) != 3 || strings.Count(counts, `"sealed": 2,`) != 1 || !strings.Contains(counts, `"unopened": 0`) {
		t.Errorf("counts: %s", counts)
	}
	marked := both + ":open"
	check(marked, 1, "is needed for open sessions (1")
	if status, text := call(t, http.MethodPost, url+"/"+first.ID+"/cancel", key.Secret, ""); status != http.StatusOK {
		t.Fatalf("cancel answers %d %s", status, text)
	}
	check(both, 0, "mark it :open first")
	check(marked, 0, "is needed no more: remove it from QUITTANCE_MASTER_KEYS")
	p.Quit()

	// Without the old key everything goes on.
	p = ingress(newest.Reveal())
	third := create("order-3")
	for _, s := range []session{first, second} {
		if s.PaymentRef == third.PaymentRef {
			t.Errorf("payment_ref %s twice", s.PaymentRef)
		}
	}
	if status, text := call(t, http.MethodPost, url+"/"+second.ID+"/cancel", key.Secret, ""); status != http.StatusOK {
		t.Errorf("cancel answers %d %s", status, text)
	}
	if log := program.Tail(p.LogFile(), 64<<10); strings.Contains(log, "do not open") {
		t.Errorf("something does not open:\n%s", log)
	}
	for _, name := range []string{"ingress", "processor"} {
		log := program.Tail(filepath.Join(i.dir, "output", name+".log"), 256<<10)
		for _, keys := range []string{old.Reveal(), newest.Reveal(), reference} {
			if _, text, _ := strings.Cut(keys, ":"); strings.Contains(log, text) {
				t.Errorf("the log of %s holds a key", name)
			}
		}
	}
	check(newest.Reveal(), 0, "is the newest and sealed")
}
