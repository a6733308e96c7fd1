// Package quittance has the changelog, which the service serves.
package quittance

import _ "embed"

// Changelog is the file CHANGELOG.md.
//
//go:embed CHANGELOG.md
var Changelog []byte
