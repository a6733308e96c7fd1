package contract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/postgres"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/test/harness"
)

// An agency prints link codes and imports contacts, taxpayers are linked by them, the first
// holder is told of the second, and the agency ends it all.
func TestLinksOfTaxpayers(t *testing.T) {
	t.Parallel()
	up := harness.Shared(t)
	o := harness.Operator{Up: up}
	run := uuid.NewString()[:8]
	subject := "NIU-" + run + "-0042"
	file := func(text string) string {
		t.Helper()
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var codes []struct {
		SubjectRef string `json:"subject_ref"`
		Code       string
	}
	o.JSON(t, &codes, "links", "codes", "impots", "--mode", "test", "--from", file(subject+"\n"+subject+"-2\n"))
	if len(codes) != 2 || codes[0].SubjectRef != subject || !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{10}$`).MatchString(codes[0].Code) {
		t.Fatalf("codes %+v", codes)
	}
	code := codes[0].Code
	o.Says(t, code, "links", "codes", "impots", "--mode", "test", "--subject", subject)
	if strings.Contains(o.Says(t, subject, "links", "codes", "impots", "--mode", "live", "--subject", subject), code) {
		t.Error("the code of test mode is that of live mode")
	}
	// Several references in one call are all answered.
	if both := o.Says(t, code, "links", "codes", "impots", "--mode", "test", "--subject", subject, "--subject", subject+"-2"); !strings.Contains(both, codes[1].Code) {
		t.Errorf("the codes of two references are %q", both)
	}
	o.Refused(t, "AGENCY: no agency has the id or slug", "links", "codes", "nobody", "--mode", "test", "--subject", subject)
	o.Refused(t, "--subject: must be 1 to 200 bytes", "links", "renew", "impots", "--subject", " "+subject)
	o.Refused(t, "no such file", "links", "codes", "impots", "--mode", "test", "--from", file("")+"-none")
	o.Refused(t, "line 2, contact: must be a mobile number of Congo", "links", "import", "impots", file(subject+",06 600 00 81\n"+subject+",12\n"))

	// The first holder by an imported contact, the second by the code.
	phone, mail := fmt.Sprintf("06 9%06d", time.Now().UnixNano()%1_000_000), "second."+run+"@example.org"
	o.Says(t, "Imported 1 contact for impots (test mode), new: 1", "links", "import", "impots", file("subject_ref;phone\n"+subject+";"+phone+"\n"))
	store := citizensOf(t, up)
	enter := func(text string, kind contact.Kind) citizens.Citizen {
		t.Helper()
		address, err := contact.Parse(kind, text)
		if err != nil {
			t.Fatal(err)
		}
		browser := secret.NewText(uuid.NewString())
		code, v, err := store.Begin(t.Context(), citizens.Request{Address: address, Browser: browser, Client: uuid.NewString()})
		if err != nil || v != citizens.Sent {
			t.Fatalf("%s, %v", v, err)
		}
		_, c, err := store.Enter(t.Context(), address, browser, code.Reveal(), money.French)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	enter(phone, contact.Phone)
	second := enter(mail, contact.Email)
	agencyID := "018f0000-0000-7000-8000-000000000001"
	if _, err := store.Prove(t.Context(), second.ID, citizens.Subject{AgencyID: agencyID, Ref: subject}, code); err != nil {
		t.Fatal(err)
	}
	to := "242" + strings.ReplaceAll(phone, " ", "")
	harness.Eventually(t, "the first holder is told", func() error {
		var got []struct{ To, Text string }
		if err := json.Unmarshal([]byte(inbox(t, up, "sms", "application/json")), &got); err != nil {
			return err
		}
		for _, m := range got {
			if m.To == to {
				if !strings.Contains(m.Text, "votre référence ***0042") || strings.Contains(m.Text, subject) {
					t.Errorf("the message is %q", m.Text)
				}
				return nil
			}
		}
		return errors.New("no message")
	})
	if strings.Contains(inbox(t, up, "mail", "application/json"), mail) {
		t.Error("who was linked is told")
	}
	var listed []struct {
		SubjectRef, Proof string
		Contacts          []string
	}
	o.JSON(t, &listed, "links", "list", "impots", "--subject", subject)
	if len(listed) != 2 || listed[0].Proof != "contact" || listed[1].Proof != "code" || !slices.Equal(listed[1].Contacts, []string{"s•••@example.org"}) || !strings.Contains(listed[0].Contacts[0], "•••") {
		t.Errorf("links %+v", listed)
	}
	o.Says(t, "s•••@example.org", "links", "list", "impots", "--subject", subject)
	var renewed struct {
		Code       string
		LinksEnded int `json:"links_ended"`
	}
	o.JSON(t, &renewed, "links", "renew", "impots", "--subject", subject)
	if renewed.LinksEnded != 2 || renewed.Code == code || len(renewed.Code) != 10 {
		t.Errorf("renewed %+v", renewed)
	}
	if text := o.Says(t, "0 links and 0 verified contacts", "links", "revoke", "impots", "--subject", subject); strings.Contains(text, "code of") {
		t.Errorf("revoke says %q", text)
	}
	o.Says(t, "Nobody is linked to this reference", "links", "list", "impots", "--subject", subject)
	o.Says(t, "", "links", "alerts", "impots")
	if _, err := store.Prove(t.Context(), second.ID, citizens.Subject{AgencyID: agencyID, Ref: subject}, renewed.Code); !errors.Is(err, citizens.ErrLinkRefused) {
		t.Errorf("a revoked code: %v", err)
	}
	for _, want := range []string{"erased", "nothing_left"} {
		for flag, address := range map[string]string{"--phone": phone, "--email": mail} {
			var got struct{ Account string }
			if o.JSON(t, &got, "erase", flag, address, "--yes"); got.Account != want {
				t.Errorf("erase %s: the account is %q, want %s", flag, got.Account, want)
			}
		}
	}
}

// citizensOf opens the accounts of an `up`, with its keys.
func citizensOf(t *testing.T, up *harness.Up) *citizens.Store {
	t.Helper()
	keys, reference := keysOf(t, up)
	pool, err := postgres.Open(t.Context(), located(t, up, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := citizens.New(citizens.Config{Pool: pool, Keys: keys, Reference: reference, Now: func() time.Time { return time.Now().UTC() }})
	if err != nil {
		t.Fatal(err)
	}
	return store
}
