// Package docs has the guides that the service serves. They are files of this folder.
package docs

import _ "embed"

// Analysts is the guide for reports, in Markdown. Its tables of columns and its reports are
// written by the test of package internal/report.
//
//go:embed analysts.md
var Analysts []byte
