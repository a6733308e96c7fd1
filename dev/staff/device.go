// Package staff has a passkey in software, with which the demo people of developer mode and tests sign in. It answers
// the same options as a browser, and the service verifies its answers like those of any passkey.
package staff

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/descope/virtualwebauthn" // an authenticator in software: COSE keys, attestation, assertions
	"github.com/google/uuid"
)

// Device holds one passkey of one person at the pages of one host. It is not safe for concurrent use.
type Device struct {
	party  virtualwebauthn.RelyingParty
	device virtualwebauthn.Authenticator
	key    virtualwebauthn.Credential
	// counts is false for a passkey that more than one device holds: it counts no signatures.
	counts bool
}

// NewDevice makes a device with a key for a person at the address of the pages.
func NewDevice(owner uuid.UUID, address string) (*Device, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("the address of the pages, %q, names no host", address)
	}
	return &Device{
		party:  virtualwebauthn.RelyingParty{Name: u.Hostname(), ID: u.Hostname(), Origin: u.Scheme + "://" + u.Host},
		device: virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: owner[:]}),
		key:    newKey(),
		counts: true,
	}, nil
}

// newKey makes a key. The library writes the coordinates of a point without leading zeros, and such a key is malformed (RFC
// 8152, section 13.1.1): another one is made.
func newKey() virtualwebauthn.Credential {
	const whole = 77 // bytes, with two coordinates of 32
	for {
		if c := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(c.Key.AttestationData()) == whole {
			return c
		}
	}
}

// Register answers the options with which a passkey is made (PublicKeyCredentialCreationOptionsJSON) with a
// RegistrationResponseJSON.
func (d *Device) Register(options json.RawMessage) ([]byte, error) {
	asked, err := virtualwebauthn.ParseAttestationOptions(string(options))
	if err != nil {
		return nil, fmt.Errorf("reading what a passkey is to be made for: %w", err)
	}
	response := virtualwebauthn.CreateAttestationResponse(d.party, d.device, d.key, *asked)
	d.device.AddCredential(d.key)
	return []byte(response), nil
}

// Answer answers the options with which a passkey is proved (PublicKeyCredentialRequestOptionsJSON) with an
// AuthenticationResponseJSON.
func (d *Device) Answer(options json.RawMessage) ([]byte, error) {
	asked, err := virtualwebauthn.ParseAssertionOptions(string(options))
	if err != nil {
		return nil, fmt.Errorf("reading what a passkey is to prove: %w", err)
	}
	if d.counts {
		d.key.Counter++
	}
	return []byte(virtualwebauthn.CreateAssertionResponse(d.party, d.device, d.key, *asked)), nil
}
