package attacks_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"

	"quittance/dev/stack/program"
)

// sendTokenToThief moves the ERP to the thief, and waits for the confirmation of a payment.
func sendTokenToThief(i *installation) error {
	if err := i.exec(`UPDATE erp_settings SET base_url = $1`, i.thief.URL); err != nil {
		return err
	}
	i.completed("TOKEN-1")
	return within(func() error {
		if !i.thief.hears("Bearer DemoErpTokenImpots") {
			return errNothing
		}
		return nil
	})
}

// becomeTheOperator moves the operator to the thief, whose word then completes the payment.
func becomeTheOperator(i *installation) error {
	if err := i.exec(`UPDATE connector_accounts SET base_url = $1`, i.thief.URL); err != nil {
		return err
	}
	s := i.create(order("OPERATOR-1"))
	if err := i.Citizen(s.ID).Pay(i.t.Context(), paysAtOnce); err != nil {
		return fmt.Errorf("paying: %w", err)
	}
	if err := i.becomes(s.ID, "completed"); err != nil {
		return err
	}
	if !i.thief.hears("Basic ") {
		return errNothing
	}
	return nil
}

// insertKey inserts a key of the platform and lists the sessions of all agencies with it.
func insertKey(i *installation) error {
	const key = "sk_test_TheKeyOfAThief0000000000"
	if err := i.exec(`INSERT INTO api_keys (id, hash, live, agencies, created_at) SELECT gen_random_uuid(), $1, false, array_agg(id), now() FROM agencies`, hash(key)); err != nil {
		return err
	}
	return within(func() error {
		a, err := i.Send(i.t.Context(), http.MethodGet, i.Sessions(""), "", "Authorization", "Bearer "+key)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("the list answers %d", a.Status)
		}
		return err
	})
}

// insertStaff inserts two members of staff, who give a payment back.
func insertStaff(i *installation) error {
	s := i.completed("STAFF-1")
	keys := []string{"st_TheFirstThief00000000000000", "st_TheSecondThief0000000000000"}
	for n, key := range keys {
		if err := i.exec(`WITH s AS (INSERT INTO staff (id, name, folded, created_at, approved_at) VALUES (gen_random_uuid(), $1::text, lower($1::text), now() - interval '1 day', now() - interval '1 day') RETURNING id)
			INSERT INTO api_keys (id, hash, staff_id, live, agencies, created_at) SELECT gen_random_uuid(), $2, id, true, '{}', now() - interval '1 day' FROM s`, "Thief "+strconv.Itoa(n), hash(key)); err != nil {
			return err
		}
	}
	text, err := i.command(keys[0], "cases", "open", s.ID, "--reason", "a test", "--json")
	if err != nil {
		return err
	}
	var opened map[string]string
	if err := json.Unmarshal([]byte(text), &opened); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	id := opened["id"]
	if err := within(func() error { // the case is there a moment later
		_, err := i.command(keys[0], "cases", "propose", id, "refund", "--reason", "a test", "--reference", "R-1")
		return err
	}); err != nil {
		return err
	}
	if _, err := i.command(keys[1], "cases", "approve", id); err != nil {
		return err
	}
	return i.received(s, "checkout.reversed")
}

// command runs a command of an operator of the installation.
func (i *installation) command(staffKey string, args ...string) (string, error) {
	cmd := exec.CommandContext(i.t.Context(), i.program, append(args, "--port", strconv.Itoa(i.port))...)
	cmd.Env = program.Environment()
	if staffKey != "" {
		cmd.Env = append(cmd.Env, "QUITTANCE_STAFF_KEY="+staffKey)
	}
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %s", strings.Join(args[:2], " "), strings.TrimSpace(says.String()))
	}
	return out.String(), nil
}

// insertReceiptKey adds a key to those that verify receipts.
func insertReceiptKey(i *installation) error {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	x := base64.RawURLEncoding.EncodeToString(public)
	// The kid is the mode and the beginning of the key's thumbprint (RFC 7638).
	thumbprint := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	kid := "live-" + base64.RawURLEncoding.EncodeToString(thumbprint[:])[:8]
	if err := i.exec(`INSERT INTO receipt_keys (id, kid, live, public, sealed, signs_from, created_at) VALUES (gen_random_uuid(), $1, true, $2, '\x00', now(), now())`, kid, []byte(public)); err != nil {
		return err
	}
	return within(func() error {
		a, err := i.Send(i.t.Context(), http.MethodGet, i.Service+"/.well-known/jwks.json", "")
		if err == nil && !strings.Contains(string(a.Body), x) {
			err = fmt.Errorf("%d, without the key", a.Status)
		}
		return err
	})
}

// removeTrace makes a key and removes the row of the audit table that says so.
func removeTrace(i *installation) error {
	if _, err := i.command("", "keys", "create", "--platform", "--agency", "impots", "--mode", "test"); err != nil {
		i.t.Fatal(err)
	}
	done, err := i.db.Exec(i.t.Context(), `DELETE FROM audit WHERE action = 'key.create'`)
	if err == nil && done.RowsAffected() == 0 {
		err = errNothing
	}
	return err
}
