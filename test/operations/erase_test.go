package operations_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/stack/program"
	"quittance/internal/kafka"
	"quittance/internal/personal"
	"quittance/test/harness"
	"quittance/test/servers"
)

// A citizen asks the agency to erase the phone number. The officer types one command, which
// finds the session by the number, leaves out the open one, and may be given again.
func TestErase(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	up := harness.NewUp(t)
	up.Start(t)
	o := harness.Operator{Up: up}
	const body = `{"order_id":%q,"amount":5000,"service_code":"patente","customer":{"name":"Mireille Tsimba","email":"mireille.tsimba@example.cg","phone":"+242 06 655 00 01"}}`
	paid := o.CreateFrom(t, harness.GuichetKey, fmt.Sprintf(body, "paid"))
	open := o.CreateFrom(t, harness.GuichetKey, fmt.Sprintf(body, "open"))
	o.Citizen(paid.ID).Pay(t, "06 600 00 01")
	o.Becomes(t, paid.ID, "completed")
	for range 2 { // a refused creation leaves no key behind
		o.Post(t, harness.GuichetKey, fmt.Sprintf(body, "paid"))
	}

	o.Misused(t, "either --session", "erase", "--yes")
	o.Misused(t, "--phone: must be a phone number", "erase", "--phone", "nobody")
	o.Refused(t, "no session has this id", "erase", "--session", "chs_nothing", "--yes")
	type result struct {
		Sessions []struct {
			SessionID string `json:"session_id"`
			Result    string `json:"result"`
		}
		Stays []string
	}
	erase := func(wantErr bool, args ...string) map[string]string {
		t.Helper()
		path := servers.QuittanceDev(t)
		args = append(append([]string{"erase"}, args...), "--yes", "--json", "--port", strconv.Itoa(o.Port))
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = program.Environment()
		out, err := cmd.Output()
		var got result
		if json.Unmarshal(out, &got) != nil || (err != nil) != wantErr || len(got.Stays) == 0 {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		found := map[string]string{}
		for _, s := range got.Sessions {
			found[s.SessionID] = s.Result
		}
		return found
	}
	got := erase(true, "--phone", "+242066550001", "--reason", "request 7")
	// The receipt by SMS may be made by now, and the erasure of its session may have erased it.
	maps.DeleteFunc(got, func(id, result string) bool {
		return strings.HasPrefix(id, personal.MessagePrefix) && (result == "erased" || result == "nothing_left")
	})
	if len(got) != 2 || got[paid.ID] != "erased" || got[open.ID] != "open" {
		t.Errorf("erased %v; want %s erased, %s open, and nothing of refused creations", got, paid.ID, open.ID)
	}
	if got := erase(false, "--session", paid.ID); got[paid.ID] != "nothing_left" {
		t.Errorf("again: %v", got)
	}
	if s := o.Session(t, paid.ID); s.Status != "completed" {
		t.Errorf("the payment is %+v", s)
	}
	if o.Journalled(t, paid.ID, "checkout.erased") != 1 {
		t.Error("the journal has no erasure")
	}
	if n := inTopics(t, up, "Tsimba", "mireille.tsimba", "066550001", "066000001", "06 655 00 01"); n < 20 {
		t.Errorf("only %d records were looked at", n)
	}
	err := filepath.WalkDir(o.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // a server removes its files meanwhile
		}
		b, _ := os.ReadFile(path)
		for _, text := range []string{"Tsimba", "mireille.tsimba", "06 655 00 01", "066550001"} {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s holds %q", path, text)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// inTopics looks for texts in every record of every topic. It returns the number of records.
func inTopics(t *testing.T, up *harness.Up, texts ...string) (n int) {
	t.Helper()
	cfg := kafka.Config{Brokers: []string{program.Local(up.Port + harness.AtBroker)}}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	all, err := admin.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range all.Names() {
		spans, err := kafka.Bounds(t.Context(), admin, topic)
		if err == nil {
			err = cfg.Read(t.Context(), topic, spans, nil, func(r *kgo.Record) (bool, error) {
				n++
				for _, text := range texts {
					if bytes.Contains(r.Value, []byte(text)) || bytes.Contains(r.Key, []byte(text)) {
						t.Errorf("a record of %s holds %q", topic, text)
					}
				}
				return true, nil
			})
		}
		if err != nil {
			t.Fatalf("reading %s: %v", topic, err)
		}
	}
	return n
}
