package journeys_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/verify"
	"quittance/ingress/web"
	"quittance/internal/batchseal"
	"quittance/internal/operation"
	"quittance/internal/receipts"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/test/harness"
	"quittance/test/servers"
)

var (
	receiptPaidAt = time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)
	reversedAt    = time.Date(2026, 11, 24, 9, 30, 0, 0, time.UTC)
	checkedAt     = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
)

var receiptActor = operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}

// treasury plays the payments behind the page that checks receipts. Its keys are in Postgres.
type treasury struct {
	pool *pgxpool.Pool
	keys *secret.Keys
	url  string

	mu    sync.Mutex
	store *receipts.Store
	paid  map[string]checkout.Session // by transaction
	now   time.Time
	down  bool
}

func newTreasury(t *testing.T, url string) *treasury {
	t.Helper()
	_, pool := servers.Database(t)
	h := &treasury{pool: pool, keys: secret.GenerateKeys(), url: url, paid: map[string]checkout.Session{}, now: checkedAt}
	if err := receipts.EnsureKeys(t.Context(), pool, h.keys, receiptActor, checkedAt); err != nil {
		t.Fatal(err)
	}
	h.forget(t)
	return h
}

// forget makes the service read its keys again.
func (h *treasury) forget(t *testing.T) {
	t.Helper()
	store, err := receipts.NewStore(receipts.StoreConfig{Pool: h.pool, Keys: h.keys, PublicURL: h.url})
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store = store
}

func (h *treasury) current() *receipts.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store
}

func (h *treasury) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *treasury) Issuer() string { return h.current().Issuer() }

func (h *treasury) Keys(ctx context.Context) (receipts.Keys, error) { return h.current().Keys(ctx) }

func (h *treasury) SignerOf(ctx context.Context, kid string) (*receipts.Signer, error) {
	return h.current().SignerOf(ctx, kid)
}

func (h *treasury) ByTransaction(_ context.Context, id string) (checkout.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.paid[id]
	if !ok {
		return checkout.Session{}, sessions.ErrNotFound
	}
	return s, nil
}

func (h *treasury) Reversals(_ context.Context, live bool, from, until time.Time) (out []sessions.Reversal, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, s := range h.paid {
		if s.Live == live && !s.ReversedAt.IsZero() && !s.EndedAt.Before(from) && (until.IsZero() || s.EndedAt.Before(until)) {
			out = append(out, sessions.Reversal{TransactionID: id, At: s.ReversedAt})
		}
	}
	return out, nil
}

// pay records a payment and returns its transaction and its token.
func (h *treasury) pay(t *testing.T, live bool, at, reversed time.Time) (id, token string) {
	t.Helper()
	return h.payWith(t, live, at, reversed, func(*checkout.Session) {})
}

// payWith is pay for a session with a change.
func (h *treasury) payWith(t *testing.T, live bool, at, reversed time.Time, change func(*checkout.Session)) (id, token string) {
	t.Helper()
	id = uuid.Must(uuid.NewV7()).String()
	s := checkout.Session{
		ID: "chs_1", TenantID: taxes, Live: live, Amount: 250_000, Currency: "XAF", CitizenID: "1", Status: checkout.StatusCompleted, EndedAt: at, PaymentRef: "4821903344556672", ReversedAt: reversed,
		Items: []checkout.Item{{
			ERPDueRef: "D-1", SubjectRef: "NIU-2026-00004711", ServiceLabel: "Contribution foncière", Amount: 250_000, Fee: 2_500, Outstanding: 250_000, TransactionID: id, NoticeRef: "AV20260000012345",
		}},
		Collection: &checkout.Collection{OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Amount: 252_500, Fee: 2_500, DecidedAt: at},
	}
	change(&s)
	token, _, err := h.current().Issue(t.Context(), "impots", s, id)
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paid[id] = s
	return id, token
}

// routes serves the page as the ingress does.
func (h *treasury) routes(t *testing.T) chi.Router {
	t.Helper()
	gate, err := web.NewGate(web.GateConfig{IDs: checkout.IDs{}, PerClient: 1000, PerInstance: 1000, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	printed, err := batchseal.Keys(h.keys)
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.New(verify.Config{
		Keys: h, Papers: printed, Sessions: h, Slug: func(string) string { return "impots" }, Agencies: func() map[string]string { return map[string]string{"impots": "Direction générale des impôts"} }, Gate: gate, PublicURL: h.url, ListAge: time.Nanosecond, Now: h.Now, Log: servers.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	v.Routes(r)
	return r
}

// tokens returns receipts by name. transaction is the one that is reversed later.
func (h *treasury) tokens(t *testing.T) (out map[string]string, later string) {
	t.Helper()
	out = map[string]string{}
	_, out["paid"] = h.pay(t, true, receiptPaidAt, time.Time{})
	_, out["before"] = h.pay(t, true, receiptPaidAt, reversedAt)
	_, out["test"] = h.pay(t, false, receiptPaidAt, time.Time{})
	_, out["test reversed"] = h.pay(t, false, receiptPaidAt, reversedAt)
	_, out["dossier"] = h.payWith(t, true, receiptPaidAt, time.Time{}, func(s *checkout.Session) { s.CitizenID, s.OrderID = "", "DOS-2026-17" })
	later, out["later"] = h.pay(t, true, receiptPaidAt.Add(time.Minute), time.Time{})
	_, out["cent"] = h.payWith(t, true, receiptPaidAt, time.Time{}, func(s *checkout.Session) {
		s.Currency, s.Items[0].Amount, s.Items[0].Outstanding = "EUR", 1, 1
	})
	_, out["largest"] = h.payWith(t, true, receiptPaidAt, time.Time{}, func(s *checkout.Session) {
		s.Items[0].Amount, s.Items[0].Outstanding = 1<<53-1, 1<<53-1
		s.Items[0].ServiceLabel = "<img src=x onerror=alert(1)> \u202eمحمد 🎉"
	})
	// Somebody has the private part of the live key, and signs a payment that was not made.
	transaction, stolen := h.pay(t, true, receiptPaidAt, time.Time{})
	delete(h.paid, transaction)
	out["stolen"] = stolen

	var err error
	// The same for a payment that was made, of another amount, fee, currency or reference.
	for name, change := range map[string]func(*checkout.Session){
		"amount":    func(s *checkout.Session) { s.Items[0].Amount, s.Items[0].Outstanding = 950_000, 950_000 },
		"fee":       func(s *checkout.Session) { s.Items[0].Fee = 0 },
		"currency":  func(s *checkout.Session) { s.Currency = "EUR" },
		"reference": func(s *checkout.Session) { s.PaymentRef = "4821903344556673" },
		"notice":    func(s *checkout.Session) { s.Items[0].NoticeRef = "AV20260000012346" },
	} {
		transaction, _ := h.pay(t, true, receiptPaidAt, time.Time{})
		s := h.paid[transaction]
		s.Items = slices.Clone(s.Items)
		change(&s)
		if out["differs "+name], _, err = h.current().Issue(t.Context(), "impots", s, transaction); err != nil {
			t.Fatal(err)
		}
	}

	parts := strings.Split(out["paid"], ".")
	live, err := h.current().Signer(t.Context(), true, receiptPaidAt)
	if err != nil {
		t.Fatal(err)
	}
	kid := live.Key().ID
	encode := base64.RawURLEncoding.EncodeToString
	header := func(alg, kid string) string {
		return encode(fmt.Appendf(nil, `{"alg":%q,"kid":%q,"typ":"quittance+jwt"}`, alg, kid))
	}
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	mac := hmac.New(sha256.New, live.Key().Public)
	_, _ = mac.Write([]byte(header("HS256", kid) + "." + parts[1]))
	strangers, err := receipts.NewKey(true, ed25519.PublicKey(bytes.Repeat([]byte{7}, 32)), receiptPaidAt)
	if err != nil {
		t.Fatal(err)
	}
	test := strings.Split(out["test"], ".")
	out["unknown"] = header("EdDSA", strangers.ID) + "." + parts[1] + "." + parts[2]
	out["forged signature"] = parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))
	out["forged amount"] = parts[0] + "." + encode(bytes.Replace(claims, []byte(`"a":250000`), []byte(`"a":950000`), 1)) + "." + parts[2]
	out["forged none"] = header("none", kid) + "." + parts[1] + "."
	out["forged none, signed"] = header("none", kid) + "." + parts[1] + "." + parts[2]
	out["forged HS256"] = header("HS256", kid) + "." + parts[1] + "." + encode(mac.Sum(nil))
	out["forged kid of a test receipt"] = header("EdDSA", kid) + "." + test[1] + "." + test[2]
	out["forged text"] = "bonjour"
	return out, later
}

// papers returns the codes of certificates and payment advices of batches by name.
func (h *treasury) papers(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	sign := func(name string, keys *secret.Keys, live bool, c batchseal.Claims) {
		t.Helper()
		signer, err := batchseal.NewSigner(keys)
		if err != nil {
			t.Fatal(err)
		}
		c.Version, c.IssuedAt, c.Agency, c.BatchRef, c.Revision, c.Currency = batchseal.Version, reversedAt.Unix(), "impots", "salaires<img src=x>", 2, "XAF"
		if c.Issuer == "" {
			c.Issuer = h.Issuer()
		}
		if out[name], err = signer.Token(live, c); err != nil {
			t.Fatal(err)
		}
	}
	certificate := batchseal.Claims{Kind: batchseal.KindCertificate, Batch: "dsb_1", Count: 20, Amount: 5_375_000, State: "releasing", Held: 1, Digest: batchseal.DigestClaim([32]byte{0xab, 31: 0xcd})}
	advice := batchseal.Claims{Kind: batchseal.KindAdvice, LineRef: "AGENT-001", PayoutRef: "QD1", OperatorRef: "OP-1", Amount: 250_000, State: "paid", PaidAt: receiptPaidAt.Unix()}
	sign("certificate", h.keys, true, certificate)
	sign("advice", h.keys, true, advice)
	sign("test", h.keys, false, advice)
	returned := advice
	returned.State, returned.ReturnedAt = "returned", reversedAt.Unix()
	sign("returned", h.keys, true, returned)
	elsewhere := advice
	elsewhere.Issuer = "other.example"
	sign("forged: of another service", h.keys, true, elsewhere)
	sign("unknown", secret.GenerateKeys(), true, advice)
	parts, other := strings.Split(out["advice"], "."), strings.Split(out["certificate"], ".")
	out["forged: the signature of another"] = parts[0] + "." + parts[1] + "." + other[2]
	out["called a receipt"] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(must(base64.RawURLEncoding.DecodeString(parts[0]))), "quittance-batch+jwt", "quittance+jwt", 1))) + "." + parts[1] + "." + parts[2]
	return out
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// serve serves the page at a port of its own, and the changes of the service at /control.
func (h *treasury) control(t *testing.T, w http.ResponseWriter, what, later string) {
	h.mu.Lock()
	s := h.paid[later]
	switch what {
	case "down", "up":
		h.down = what == "down"
	case "reverse":
		s.ReversedAt = h.now
		h.paid[later] = s
	case "rotate":
		h.now = h.now.Add(receipts.AnnouncedFor + 24*time.Hour)
	}
	now := h.now
	h.mu.Unlock()
	switch what {
	case "rotate":
		if _, err := receipts.RotateKeys(t.Context(), h.pool, h.keys, receiptActor, []bool{true}, now.Add(-receipts.AnnouncedFor-time.Hour)); err != nil {
			t.Error(err)
		}
		h.forget(t)
		_, token := h.pay(t, true, now, time.Time{})
		_, _ = w.Write([]byte(token))
	case "revoke":
		first, err := h.current().Signer(t.Context(), true, receiptPaidAt)
		if err != nil {
			t.Error(err)
			return
		}
		if _, _, _, err := receipts.RevokeKey(t.Context(), h.pool, h.keys, receiptActor, first.Key().ID, now); err != nil {
			t.Error(err)
		}
		h.forget(t)
	}
}

// Receipts are checked in a real browser, with and without network: authentic, reversed before
// and after the list came, test, forged and of an unknown key; with a wrong clock, without
// Ed25519 in the browser, without scripts, and while keys change.
func TestReceiptsInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	h := newTreasury(t, server.URL)
	tokens, later := h.tokens(t)
	pages := h.routes(t)
	mux.HandleFunc("POST /control/{what}", func(w http.ResponseWriter, r *http.Request) { h.control(t, w, r.PathValue("what"), later) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		down := h.down
		h.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		pages.ServeHTTP(w, r)
	})
	runCases(t, "receipts.mjs", map[string]any{
		"base": server.URL, "control": server.URL + "/control", "tokens": tokens, "papers": h.papers(t), "day": "25 novembre 2026", "clock": "10:00", "only": os.Getenv("QUITTANCE_CASES"),
	})
}

// The scripts that anybody may write verify a receipt with the served key set alone.
func TestReceiptsWithJOSELibraries(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Start()
	t.Cleanup(server.Close)
	h := newTreasury(t, server.URL)
	tokens, _ := h.tokens(t)
	w := answerTo(t, h.routes(t), httptest.NewRequestWithContext(t.Context(), http.MethodGet, verify.PathKeys, http.NoBody), http.StatusOK)
	folder := servers.Dir(t)
	set := filepath.Join(folder, "jwks.json")
	if err := os.WriteFile(set, w.Body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	deps, script := harness.Absolute(t, ".deps/papers"), filepath.Join(folder, "verify.mjs")
	source, err := os.ReadFile(filepath.Join(harness.Root, "test/tools/papers/verify.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, source, 0o600); err != nil { // Node.js finds packages beside the script
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(deps, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"Python": {filepath.Join(deps, "python/bin/python"), filepath.Join(harness.Root, "test/tools/papers/verify.py")},
		"Node":   {"node", script},
	} {
		for token, text := range tokens {
			out, err := exec.CommandContext(t.Context(), command[0], command[1], set, server.URL+"/q#"+text).Output()
			var got struct {
				Claims map[string]any
				Test   bool
			}
			known := strings.HasPrefix(token, "differs ") || slices.Contains([]string{"paid", "before", "later", "test", "test reversed", "dossier", "stolen", "cent", "largest"}, token)
			if (err == nil) != known || known && (json.Unmarshal(out, &got) != nil || got.Test != strings.HasPrefix(token, "test") || !strings.HasPrefix(got.Claims["pr"].(string), "482190334455667")) {
				t.Errorf("%s, %s: %s, %v", name, token, out, err)
			}
		}
	}
}
