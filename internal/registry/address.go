package registry

import "strings"

// DefaultSimulators is where the simulators of `quittance up` listen unless told
// otherwise. In developer mode a registry file that says so means the simulators,
// wherever they listen.
const DefaultSimulators = "http://127.0.0.1:8081"

// simulatorScheme begins a stored address at the simulators.
const simulatorScheme = "simulators:"

// ToStored turns an address at DefaultSimulators into one at wherever they are.
// Outside developer mode no registry file may hold such an address: it is not
// https.
func ToStored(raw string) string {
	rest, ok := strings.CutPrefix(raw, DefaultSimulators)
	if ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
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
