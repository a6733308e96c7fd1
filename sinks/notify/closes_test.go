package notify_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/notify/payment"
	"quittance/internal/provider"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/notify"
	deliverytest "quittance/test/deliveries"
)

// An agency gets one e-mail for each close that is signed, with a statement that verifies. Refused closes, those of a
// release before signatures, those of long ago and those of an agency without an address are told nobody.
func TestAgenciesAreToldOfCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	var records []*kgo.Record
	closed := func(id, agency string, change, forge func(*record.Close)) {
		t.Helper()
		rec := &record.Close{
			CloseID: id, TenantID: agency, Livemode: true, Account: "mtn", FromDay: "2026-11-01", ToDay: "2026-11-30", State: journal.CloseClosed, CaseID: "case_" + id, Digest: "d", Currency: "XAF", Watermarks: map[string]string{},
			At: w.Now(), ChainVersion: 1, ChainRows: 12, ChainRoot: strings.Repeat("ab", 32), SourcesNew: 12, SourcesNewAmount: 60900, SourcesMatchedAmount: 60000, SourcesEndAmount: 900, OpenBreaks: 7,
		}
		if change != nil {
			change(rec)
		}
		of, err := journal.CloseOf(rec, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		signature, key, err := w.keys.SignDetached(journal.LabelCloses, []byte(of.Statement()))
		if err != nil {
			t.Fatal(err)
		}
		rec.Signature, rec.SignedWith = base64.StdEncoding.EncodeToString(signature), key
		if forge != nil {
			forge(rec)
		}
		value, err := w.Codec.Encode(rec)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: w.Kafka.Prefix + schemas.TopicReconciliation, Key: []byte(agency), Value: value})
	}
	closed("cls_refused", "agency", func(c *record.Close) { c.State = journal.CloseRefused }, nil)
	closed("cls_unsigned", "agency", nil, func(c *record.Close) { c.Signature, c.SignedWith = "", "" })
	closed("cls_old", "agency", func(c *record.Close) { c.At = c.At.Add(-8 * 24 * time.Hour) }, nil)
	closed("cls_nowhere", "silent", nil, nil)
	closed("cls_good", "agency", nil, func(c *record.Close) { c.ChainRoot = strings.Repeat("cd", 32) }) // somebody else's: neither sent, nor in the way of the true one
	closed("cls_good", "agency", nil, nil)
	records = append(records, records[len(records)-1]) // read twice
	closed("cls_last", "agency", nil, nil)
	c, err := notify.NewCloses(notify.ClosesConfig{
		Kafka: w.Kafka, Codec: w.Codec, Sender: w.sender, Keys: w.keys.PublicKeys(journal.LabelCloses), Now: w.Now, Log: slog.New(slog.NewTextHandler(w.log, nil)), Metrics: prometheus.NewRegistry(),
		Agency: func(id string) (payment.Agency, bool) {
			a := payment.Agency{Name: "Direction générale des impôts", Email: "comptable@impots.example"}
			if id == "silent" {
				a.Email = ""
			}
			return a, true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.publish(records...)
	deliverytest.Start(t, c)
	deliverytest.Eventually(t, "the last close is told", func() bool {
		for _, l := range w.sim.Inbox(provider.ChannelEmail) {
			if strings.Contains(plain(l.Text), "cls_last") {
				return true
			}
		}
		return false
	})
	letters := w.sim.Inbox(provider.ChannelEmail)
	if len(letters) != 2 {
		t.Fatalf("%d letters", len(letters))
	}
	for _, l := range letters {
		if l.To != "comptable@impots.example" {
			t.Errorf("sent to %s", l.To)
		}
		has(t, l.Subject+"\n"+plain(l.Text), []string{"période clôturée : compte mtn, 01/11/2026 - 30/11/2026", "Racine : " + strings.Repeat("ab", 32), "Lignes sous la racine : 12", "60 900 FCFA", "Écarts ouverts : 7", "quittance periods keys"}, nil)
		_, statement, _ := strings.Cut(strings.ReplaceAll(l.Text, "\r\n", "\n"), "\n\nquittance-close 1\n")
		statement, rest, _ := strings.Cut(statement, "\n\n")
		_, signature, _ := strings.Cut(rest, "base64) : ")
		signature, _, _ = strings.Cut(signature, "\n")
		raw, err := base64.StdEncoding.DecodeString(signature)
		if err != nil || !ed25519.Verify(w.keys.PublicKeys(journal.LabelCloses)[0].Key, []byte("quittance-close 1\n"+statement+"\n"), raw) {
			t.Errorf("the statement of the letter does not verify: %q, %q", statement, signature)
		}
	}
	if !strings.Contains(w.log.String(), "no e-mail address") {
		t.Error("nobody hears of an agency without an address")
	}
}
