// Package attacks takes a part of a running installation and tries what its taker would: to make a payment
// paid, to read a credential, to decide for two people. It uses SQL, Kafka's protocol and HTTP, and no code
// of the service, so that the same script runs against any release.
//
// `make test/attacks` runs it against the tree, where each attack must fail. `make test/attacks
// COMMIT=8de99f78` runs it against that commit, before docs/design/rights.md, where each must succeed.
package attacks
