package journeys_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/stack/program"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/test/await"
	"quittance/test/harness"
)

// carts makes sessions of the citizen portal, as its checkout does.
type carts struct {
	u        *harness.Up
	producer *kgo.Client
	topology *kafka.Topology
	protocol commands.Protocol[checkout.Command, checkout.Answer]
	ids      checkout.IDs
	signer   *origin.Signer
	made     int
}

func openCarts(t *testing.T, u *harness.Up) *carts {
	t.Helper()
	cfg := kafka.Config{Brokers: []string{program.Local(u.Port + harness.AtBroker)}}
	c := &carts{u: u}
	var err error
	if c.producer, err = cfg.Producer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.producer.Close)
	if c.topology, err = kafka.Load(t.Context(), cfg, c.producer); err != nil {
		t.Fatal(err)
	}
	schemasAt, err := schemas.NewClient(u.URL(harness.AtRegistry, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), schemasAt, false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(u.Data(), "reference.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.ParseReferenceKey(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c.protocol, c.ids = commands.CheckoutProtocol(codec, c.topology), checkout.NewIDs(key.MAC("ids"))
	if c.signer, err = commands.NewSigner(u.Keys(t), "ingress"); err != nil {
		t.Fatal(err)
	}
	return c
}

// cart returns a session that pays a due of 5,000 XAF of a subject of its own, and the
// reference of the due, which the simulated ERP knows.
func (c *carts) cart(t *testing.T) (s harness.Session, due string) {
	t.Helper()
	c.made++
	subject := fmt.Sprint("JOURNEY-", c.made)
	due = subject + "-A"
	c.u.Control(t, "erp/impots", fmt.Sprintf(`{"dues": {%q: [{"erp_due_ref": %q, "label": "Patente 2026", "amount_minor": 5000, "outstanding_minor": 5000,
		"original_minor": 5000, "currency": "XAF", "allow_partial": false}]}}`, subject, due))
	now := time.Now().UTC().Truncate(time.Millisecond)
	id := c.ids.NewSession(now, c.topology.Partition(schemas.TopicCommands, harness.GuichetAgency), [16]byte(uuid.New()))
	item := checkout.Item{ERPDueRef: due, SubjectRef: subject, Label: "Patente 2026", Amount: 5000, Outstanding: 5000, TransactionID: uuid.NewString(), NoticeID: uuid.NewString(), NoticeRef: "AV-" + subject}
	record, err := c.protocol.Encode(checkout.Command{At: now, TenantID: harness.GuichetAgency, SessionID: id, Do: checkout.Create{
		IdempotencyKey: id, BodyHash: []byte(id), Session: checkout.Session{
			ID: id, ApplicationID: registry.PortalID(harness.GuichetAgency), TenantID: harness.GuichetAgency, OrderID: item.NoticeRef, Amount: 5000, Currency: "XAF",
			Mode: checkout.ModeHosted, Description: "Patente 2026", PaymentRef: fmt.Sprintf("99%014d", c.made), ExpiresAt: now.Add(2 * time.Hour),
			NoticeID: item.NoticeID, NoticeRef: item.NoticeRef, TransactionID: item.TransactionID,
			ERP: true, CitizenID: uuid.NewString(), PulledAt: now, Items: []checkout.Item{item},
			Offers: []checkout.Offer{{ID: "momo", Channel: checkout.ChannelMobileMoney, Fee: 75}, {ID: "momo_b", Channel: checkout.ChannelMobileMoney, Fee: 75}, {ID: "cash_agency", Channel: checkout.ChannelCash}},
		},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	record.Topic = c.topology.Name(schemas.TopicCommands)
	c.signer.Sign(record)
	if err := c.producer.ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s = harness.Session{ID: id, CheckoutURL: c.u.URL(harness.AtService, "/c/"+id)}
	await.Until(t, "the page of a portal session opens", func() bool {
		return c.u.Call(t, http.MethodGet, s.CheckoutURL, "").Status == http.StatusOK
	})
	return s, due
}

// changes are rows about a due that the agency changes while the citizen looks at the review.
func changes() []visitor {
	row := visitor{scenario: "dueChanges", hosted: true, portal: true, answers: []string{number("momo", "01", 0)}, pages: toReview + "cancelled", check: checkChanged}
	lower, gone := row, row
	lower.name, lower.change = "the agency lowers the due", `{"outstanding_minor": 4000}`
	gone.name, gone.change = "the agency withdraws the due", "null"
	return []visitor{lower, gone}
}

// checkChanged checks that the citizen reads why, and comes back to the dues.
func checkChanged(t *testing.T, _ visitor, seen []shown) {
	last := seen[len(seen)-1]
	why := map[string]string{"fr": "L’administration a changé une somme que vous alliez payer", "en": "The agency has changed an amount that you were about to pay"}[last.Lang]
	if !strings.Contains(last.Text, why) || !slices.Contains(last.Links, "/portal") {
		t.Errorf("the last page has the links %q and reads %q", last.Links, last.Text)
	}
}
