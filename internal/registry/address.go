package registry

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// defaultSimulators is the default address of the simulators of `quittance-dev up`. In
// developer mode this address in a registry file means the simulators of the
// installation, also when they listen at another address.
const defaultSimulators = "http://127.0.0.1:8081"

// defaultSwitch is the default address of the simulated switch, which has a port of its own.
const defaultSwitch = "https://127.0.0.1:8093"

// switchAfter is how many ports the simulated switch is after the simulators.
const switchAfter = 12

// switchScheme is the beginning of a stored address at the simulated switch.
const switchScheme = "simulated-switch:"

// simulatorScheme is the beginning of a stored address at the simulators.
const simulatorScheme = "simulators:"

// ToStored replaces defaultSimulators, or defaultSwitch, at the beginning of an address by a
// scheme that stands for the simulators of any installation. Outside developer mode a registry file
// cannot hold such an address, because it is on this machine.
func ToStored(raw string) string {
	for address, scheme := range map[string]string{defaultSimulators: simulatorScheme, defaultSwitch: switchScheme} {
		rest, ok := strings.CutPrefix(raw, address)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
			return scheme + rest
		}
	}
	return raw
}

// fromStored is the inverse of ToStored. simulators is the address of the installation's
// simulators; defaultSimulators when empty.
func fromStored(stored, simulators string) string {
	if simulators == "" {
		simulators = defaultSimulators
	}
	if rest, ok := strings.CutPrefix(stored, switchScheme); ok {
		return switchBeside(simulators) + rest
	}
	rest, ok := strings.CutPrefix(stored, simulatorScheme)
	if !ok {
		return stored
	}
	return strings.TrimSuffix(simulators, "/") + rest
}

// switchBeside returns the address of the switch beside simulators at an address.
func switchBeside(simulators string) string {
	u, err := url.Parse(simulators)
	if err != nil {
		return defaultSwitch
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return defaultSwitch
	}
	return "https://" + net.JoinHostPort(u.Hostname(), strconv.Itoa(port+switchAfter))
}
