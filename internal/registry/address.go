package registry

import "strings"

// defaultSimulators is the default address of the simulators of `quittance-dev up`. In
// developer mode this address in a registry file means the simulators of the
// installation, also when they listen at another address.
const defaultSimulators = "http://127.0.0.1:8081"

// simulatorScheme is the beginning of a stored address at the simulators.
const simulatorScheme = "simulators:"

// ToStored replaces defaultSimulators at the beginning of an address by a scheme that
// stands for the simulators of any installation. Outside developer mode a registry file
// cannot hold such an address, because it is not https.
func ToStored(raw string) string {
	rest, ok := strings.CutPrefix(raw, defaultSimulators)
	if ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
		return simulatorScheme + rest
	}
	return raw
}

// fromStored is the inverse of ToStored. simulators is the address of the installation's
// simulators; defaultSimulators when empty.
func fromStored(stored, simulators string) string {
	rest, ok := strings.CutPrefix(stored, simulatorScheme)
	if !ok {
		return stored
	}
	if simulators == "" {
		simulators = defaultSimulators
	}
	return strings.TrimSuffix(simulators, "/") + rest
}
