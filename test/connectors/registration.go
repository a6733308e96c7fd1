package connectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/secret"
)

// recordedFields records which fields of an account a connector reads.
type recordedFields struct {
	connector.StoredFields
	read    []string
	secrets []string
}

func readFields(fields map[string]string) *recordedFields {
	return &recordedFields{StoredFields: connector.NewStoredFields(fields, nil)}
}

// Text records the name.
func (f *recordedFields) Text(name string) string {
	f.read = append(f.read, name)
	return f.StoredFields.Text(name)
}

// Secret records the name and the secret.
func (f *recordedFields) Secret(name string) secret.Text {
	f.read = append(f.read, name)
	s := f.StoredFields.Secret(name)
	f.secrets = append(f.secrets, s.Reveal())
	return s
}

// ReportSecret records the name and the secret.
func (f *recordedFields) ReportSecret(name string) secret.Text {
	f.read = append(f.read, name)
	s := f.StoredFields.ReportSecret(name)
	f.secrets = append(f.secrets, s.Reveal())
	return s
}

// withoutSecrets are fields without secrets.
type withoutSecrets struct{ connector.Fields }

// Secret is empty.
func (withoutSecrets) Secret(string) secret.Text { return secret.Text{} }

// ReportSecret is empty.
func (withoutSecrets) ReportSecret(string) secret.Text { return secret.Text{} }

// rotated are fields with other secrets.
type rotated struct{ connector.Fields }

// Secret is another secret.
func (rotated) Secret(string) secret.Text { return secret.NewText("rotated") }

// ReportSecret is another secret.
func (rotated) ReportSecret(string) secret.Text { return secret.NewText("rotated") }

// anotherAccount belongs to no connector.
type anotherAccount struct{}

// Fingerprint is empty.
func (anotherAccount) Fingerprint() string { return "" }

// Check checks that the parts of a table agree.
func Check(t *testing.T, table connector.Table) {
	t.Helper()
	names, accounts := map[string]bool{}, map[string]bool{}
	for _, r := range table.Operators {
		if r.Operator == "" || names[r.Operator] {
			t.Errorf("the name of operator %q is another operator's", r.Operator)
		}
		names[r.Operator] = true
	}
	for _, a := range append(table.Accounts(connector.PurposeCollect), table.Accounts(connector.PurposePayout)...) {
		if a.Name == "" || accounts[a.Name] {
			t.Errorf("the name of the account %q is another account's", a.Name)
		}
		accounts[a.Name] = true
	}
	all, err := table.Connect(Config())
	if err != nil {
		t.Fatal(err)
	}
	byOffer := table.ByOffer(all)
	for offer, operator := range table.Offers {
		channel, offered := checkout.OfferChannel(offer)
		c, connected := byOffer[offer]
		_, reaches := c.(connector.PayerReader)
		switch {
		case !offered || channel.Origin() != checkout.OriginAsked:
			t.Errorf("offer %q is no operator's", offer)
		case !connected || c.Operator() != operator:
			t.Errorf("offer %s names %s, which takes no money", offer, operator)
		case reaches != channel.ByPhone():
			t.Errorf("offer %s of channel %s, %s reads numbers: %v", offer, channel, operator, reaches)
		}
	}
}

// registered checks that the parts of a registration agree.
func registered(t *testing.T, r connector.Registration, operator Operator) {
	c, err := r.Collector.New(Config())
	if err != nil {
		t.Fatal(err)
	}
	if r.Operator == "" || c.Operator() != r.Operator {
		t.Errorf("the connector of %q calls itself %q", r.Operator, c.Operator())
	}
	if _, reaches := c.(connector.PayerReader); r.Collector.USSD != "" && !reaches {
		t.Errorf("a code for phones, %s, and no number", r.Collector.USSD)
	}
	for name, cfg := range map[string]connector.Config{"no clock": {}, "negative time-out": {Now: now, Timeout: -1}} {
		if _, err := r.Collector.New(cfg); err == nil || !strings.HasPrefix(err.Error(), r.Operator+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	accountType(t, r.Collector.Account, operator)
}

// accountType checks that the fields of an account, its secrets and its fingerprint agree.
func accountType(t *testing.T, a connector.AccountType, operator Operator) {
	const base = "https://operator.example"
	fields := readFields(operator.Fields)
	account := a.Read(base, fields)
	names := slices.Sorted(maps.Keys(operator.Fields))
	if got := slices.Compact(slices.Sorted(slices.Values(fields.read))); !slices.Equal(got, names) {
		t.Errorf("the account reads %v, the suite has %v", got, names)
	}
	if got := slices.Sorted(maps.Keys(a.Simulated("018f0000-0000-7000-8000-000000000001", "impots"))); !slices.Equal(got, names) {
		t.Errorf("the simulated account has %v, the account reads %v", got, names)
	}
	if len(fields.secrets) == 0 {
		t.Error("an account without a secret")
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).LogAttrs(t.Context(), slog.LevelInfo, "x", slog.Any("account", account))
	marshalled, err := json.Marshal(account)
	if err != nil {
		t.Error(err)
	}
	for _, text := range []string{log.String(), string(marshalled), fmt.Sprint(account), fmt.Sprintf("%+v %#v", account, account), fmt.Sprint(struct{ A connector.Account }{account})} {
		if !strings.Contains(text, base) || slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, operator.Fields[name]) }) {
			t.Errorf("the account prints %s", text)
		}
	}
	if account.Fingerprint() != a.Read(base, rotated{readFields(operator.Fields)}).Fingerprint() {
		t.Error("another secret makes another account")
	}
	if account != a.Read(base, readFields(operator.Fields)) {
		t.Error("the same fields make two accounts")
	}
	if account.Fingerprint() != a.Read(base+"/other", readFields(operator.Fields)).Fingerprint() {
		t.Error("another address makes another account")
	}
	others := map[string]string{}
	for name, value := range operator.Fields {
		others[name] = value + "-other"
	}
	if account.Fingerprint() == a.Read(base, readFields(others)).Fingerprint() {
		t.Error("two merchants make one account")
	}
}
