// Package docs has the guides that the service serves, which are files of this folder, and
// the French of texts that pages take from elsewhere.
package docs

import _ "embed"

// Analysts is the guide for reports, in Markdown. The test of package internal/report writes
// its reports.
//
//go:embed analysts.md
var Analysts []byte

// AnalystsFrench is Analysts in French, with the same examples. The same test writes its parts.
//
//go:embed analysts.fr.md
var AnalystsFrench []byte

// Views is the description of every column of every view, in Markdown. The test of package
// internal/report writes its tables.
//
//go:embed views.md
var Views []byte

// ViewsFrench is Views in French. The same test writes its tables.
//
//go:embed views.fr.md
var ViewsFrench []byte

// Cashin is the guide for partners of the deprecated cash-in API, and for the agency that
// moves them, in Markdown.
//
//go:embed cash-in.md
var Cashin []byte

// CashinFrench is Cashin in French.
//
//go:embed cash-in.fr.md
var CashinFrench []byte

// ERP is the guide for vendors of agencies' ERPs, in Markdown.
//
//go:embed erp.md
var ERP []byte

// ERPFrench is ERP in French, with the same examples.
//
//go:embed erp.fr.md
var ERPFrench []byte

// Receipts is the guide for those who check receipts, in Markdown.
//
//go:embed receipts.md
var Receipts []byte

// ReceiptsFrench is Receipts in French, with the same examples.
//
//go:embed receipts.fr.md
var ReceiptsFrench []byte
