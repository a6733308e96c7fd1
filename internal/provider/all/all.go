// Package all lists the providers of messages. Only programs and tests import it; they pass
// the table to the other packages.
package all

import (
	"quittance/internal/provider"
	"quittance/internal/provider/infobip"
	"quittance/internal/provider/mtnsms"
	"quittance/internal/provider/smtp"
)

// Providers lists every provider.
func Providers() provider.Table {
	return provider.Table{infobip.Registration, mtnsms.Registration, smtp.Registration}
}
