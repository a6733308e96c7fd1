package passkeys_test

import (
	"encoding/json"
	"testing"

	"quittance/internal/passkeys"
)

// Earlier versions of the library wrote the format of the attestation where its type is now.
func TestCredentialsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	var c passkeys.Credential
	if err := json.Unmarshal([]byte(`{"id": "AQI=", "attestationType": "packed", "flags": {"backupState": true}}`), &c); err != nil {
		t.Fatal(err)
	}
	if c.AttestationFormat != "packed" || c.AttestationType != "" || string(c.ID) != "\x01\x02" || !c.Synced() {
		t.Errorf("read %+v", c)
	}
}
