// Package ministry is the checkout API of integrators' back ends: create, get,
// list and cancel sessions with an sk_ key (contract, "Endpoints"; decisions
// §§ 1-3, 9). It resolves configuration, validates what the request alone shows
// to be wrong, and leaves every decision to the processors.
package ministry
