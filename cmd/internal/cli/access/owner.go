package access

import (
	"context"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/internal/registry"
)

// OwnerFlags name the owner of an endpoint or of origins.
type OwnerFlags struct {
	Application string
	platform    bool
}

// Declare declares the flags.
func (o *OwnerFlags) Declare(f *pflag.FlagSet) {
	f.StringVar(&o.Application, "application", "", "the application, by id or by its name if no other has it")
	f.BoolVar(&o.platform, "platform", false, "the platform's own, for sessions of platform keys")
}

// Check refuses flags that name no owner or two.
func (o *OwnerFlags) Check(*cli.Meta) error {
	if o.platform == (o.Application != "") {
		return cli.Usage("say whose: either --application ID_OR_NAME, or --platform")
	}
	return nil
}

// AccountFlags name an account on the command line.
type AccountFlags struct{ Agency, Mode, Code string }

// Declare declares the flags.
func (a *AccountFlags) Declare(f *pflag.FlagSet) {
	f.StringVar(&a.Agency, "agency", "", "the agency, by its slug or id")
	cli.TakesMode(f, &a.Mode)
	f.StringVar(&a.Code, "account", "", "the `code` of the account; quittance accounts list shows them")
}

// Check refuses flags that do not name an account.
func (a *AccountFlags) Check() error {
	switch {
	case a.Agency == "":
		return cli.Usage("say whose account: --agency SLUG_OR_ID")
	case a.Code == "":
		return cli.Usage("say which account: --account CODE; `quittance accounts list` shows them")
	}
	return cli.NeedsMode(a.Mode)
}

// Find returns the account that the flags name.
func (a *AccountFlags) Find(ctx context.Context, m *cli.Meta) (registry.StatementAccount, error) {
	s, err := registry.Read(ctx, m.Pool)
	if err != nil {
		return registry.StatementAccount{}, err
	}
	agency, err := s.FindAgency(a.Agency)
	if err != nil {
		return registry.StatementAccount{}, err
	}
	return s.FindStatementAccount(agency.ID, a.Mode == registry.Mode(true), a.Code)
}

// MissingAgency is the error when the argument AGENCY is missing.
const MissingAgency = "say whose: {usage}, the agency's slug or id"
