package registry

import (
	"errors"
	"net/netip"
	"strings"

	"quittance/internal/address"
)

// DefaultSimulators is where the simulators of `quittance up` listen unless told
// otherwise. In developer mode a registry file that says so means the simulators,
// wherever they listen.
const DefaultSimulators = "http://127.0.0.1:8081"

// simulatorScheme begins a stored address at the simulators.
const simulatorScheme = "simulators:"

// checkWebhookURL tells why raw cannot be a webhook address; nil when it can.
func checkWebhookURL(raw string, developer bool) error {
	return address.Rule{Developer: developer}.CheckNew(raw)
}

// checkBackendURL is for ERPs and operators.
func checkBackendURL(raw string, networks []netip.Prefix, developer bool) error {
	return address.Rule{Developer: developer, Backend: true, Networks: networks}.CheckNew(raw)
}

// checkOrigin is for pages that embed us or are returned to: an https origin as
// a browser writes it.
func checkOrigin(raw string) error {
	u, err := address.Parse(raw)
	if err != nil || len(raw) > address.MaxLength || u.Scheme != "https" || raw != "https://"+u.Host || u.Host != strings.ToLower(u.Host) || u.Port() == "443" {
		return errors.New("must be an https origin in lower case without a path, such as https://guichet.example")
	}
	return nil
}

// toStored turns an address at DefaultSimulators into one at wherever they are.
func toStored(raw string, developer bool) string {
	rest, ok := strings.CutPrefix(raw, DefaultSimulators)
	if developer && ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
		return simulatorScheme + rest
	}
	return raw
}

// fromStored is the inverse for an installation whose simulators listen at
// simulators; DefaultSimulators when that is empty.
func fromStored(stored, simulators string) string {
	rest, ok := strings.CutPrefix(stored, simulatorScheme)
	if !ok {
		return stored
	}
	if simulators == "" {
		simulators = DefaultSimulators
	}
	return strings.TrimSuffix(simulators, "/") + rest
}
