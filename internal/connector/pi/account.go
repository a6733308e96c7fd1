package pi

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"slices"

	"quittance/internal/connector"
	"quittance/internal/contact"
)

// Operator is the short name of the switch, whatever its profile.
const Operator = "switch"

// Notice is the label of the profile, wherever the switch is shown to an agency or its operators.
const Notice = "profile pi; not certified by GIMAC"

// Registration is the registration of the switch.
var Registration = connector.Registration{
	Operator: Operator,
	Notice:   Notice,
	Collector: &connector.Collector{
		Account: accountType("switch", connector.PurposeCollect),
		New:     func(cfg connector.Config) (connector.Connector, error) { return New(cfg) },
	},
	Disburser: &connector.Disburser{
		Account: accountType("switch_payout", connector.PurposePayout),
		New:     func(cfg connector.Config) (connector.PayoutConnector, error) { return NewPayouts(cfg) },
	},
}

func accountType(name string, purpose connector.Purpose) connector.AccountType {
	return connector.AccountType{
		Name: name,
		Read: func(base connector.BaseURL, f connector.Fields) connector.Account {
			return Account{
				BaseURL: base, Purpose: purpose, ClientID: f.Text("client_id"), ClientSecret: f.Secret("client_secret").Reveal(), APIKey: f.Secret("api_key").Reveal(),
				Alias: f.Text("alias"), Certificate: f.Text("certificate"), PrivateKey: f.Secret("private_key").Reveal(),
			}
		},
		Simulated: func(agencyID, agencySlug string) map[string]string {
			return map[string]string{
				"client_id": agencyID, "client_secret": "simulator", "api_key": "simulator", "alias": "simulated-" + agencySlug,
				"certificate": "none", "private_key": "simulator", // over http nobody shows them
			}
		},
	}
}

// Account is an agency's account at the switch, which a bank of the agency keeps.
type Account struct {
	connector.BaseURL
	// Purpose is what the account is for. Two accounts of one client and alias differ by it.
	Purpose      connector.Purpose
	ClientID     string
	ClientSecret string
	APIKey       string
	// Alias names the account at the switch.
	Alias string
	// Certificate is base64 of PEM: the client certificate that the switch gave, the certificates
	// between it and its authority, and the authorities of the switch's own server, which are
	// self-signed. Without authorities those of the machine count.
	Certificate string
	// PrivateKey is base64 of PEM: the key of the certificate.
	PrivateKey string
}

// Fingerprint is of the client, to whom alone the switch tells of a payment, and of the alias, from
// whose account it was paid.
func (a Account) Fingerprint() string {
	return connector.Fingerprint(Operator+" "+string(a.Purpose), a.ClientID, a.Alias)
}

// TLS returns what connections to the switch need. Over http, which only a developer's registry
// takes, nobody shows a certificate.
func (a Account) TLS() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if !a.secure() {
		return cfg, nil
	}
	chain, err := decoded(a.Certificate)
	if err != nil {
		return nil, errors.New("the account's certificate is not base64 of a PEM file")
	}
	key, err := decoded(a.PrivateKey)
	if err != nil {
		return nil, errors.New("the account's private_key is not base64 of a PEM file")
	}
	var authorities *x509.CertPool
	var sent []byte
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case block.Type != "CERTIFICATE" || err != nil:
			return nil, errors.New("the account's certificate holds something else than certificates")
		case certificate.IsCA && certificate.CheckSignatureFrom(certificate) == nil:
			if authorities == nil {
				authorities = x509.NewCertPool()
			}
			authorities.AddCert(certificate)
		default:
			sent = slices.Concat(sent, pem.EncodeToMemory(block))
		}
	}
	pair, err := tls.X509KeyPair(sent, key)
	if err != nil {
		return nil, errors.New("the account's certificate and private_key do not belong together") // the cause may quote the key
	}
	cfg.Certificates, cfg.RootCAs = []tls.Certificate{pair}, authorities
	return cfg, nil
}

func (a Account) secure() bool { return len(a.BaseURL) > 6 && a.BaseURL[:6] == "https:" }

func decoded(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }

// tokenCall asks for a token. The secret goes in the header (RFC 6749, 2.3.1).
func tokenCall(a Account) connector.Call {
	credentials := base64.StdEncoding.EncodeToString([]byte(a.ClientID + ":" + a.ClientSecret))
	return connector.Call{Path: "/oauth2/token", Body: []byte("grant_type=client_credentials"), Header: map[string]string{
		"Authorization": "Basic " + credentials, "Content-Type": "application/x-www-form-urlencoded", "x-api-key": a.APIKey,
	}}
}

// alias returns the alias of a person: the number with the calling code and a plus sign. The switch
// reaches the wallets of all operators.
func alias(number string) string { return "+" + number }

// number turns a Congolese mobile number as people write it into digits with the calling code.
func number(input string) (string, error) { return contact.MobileOf(input, "04", "05", "06") }
