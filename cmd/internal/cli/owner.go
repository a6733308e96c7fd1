package cli

import (
	"context"

	"github.com/spf13/pflag"

	"quittance/internal/registry"
)

// ownerFlags name the owner of an endpoint or of origins.
type ownerFlags struct {
	application string
	platform    bool
}

func (o *ownerFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&o.application, "application", "", "the application, by id or by its name if no other has it")
	f.BoolVar(&o.platform, "platform", false, "the platform's own, for sessions of platform keys")
}

func (o *ownerFlags) check(*Meta) error {
	if o.platform == (o.application != "") {
		return usage("say whose: either --application ID_OR_NAME, or --platform")
	}
	return nil
}

// account names an account on the command line.
type accountFlags struct{ agency, mode, code string }

func (a *accountFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&a.agency, "agency", "", "the agency, by its slug or id")
	takesMode(f, &a.mode)
	f.StringVar(&a.code, "account", "", "the `code` of the account; quittance accounts list shows them")
}

func (a *accountFlags) check() error {
	switch {
	case a.agency == "":
		return usage("say whose account: --agency SLUG_OR_ID")
	case a.code == "":
		return usage("say which account: --account CODE; `quittance accounts list` shows them")
	}
	return needsMode(a.mode)
}

func (a *accountFlags) find(ctx context.Context, m *Meta) (registry.StatementAccount, error) {
	s, err := registry.Read(ctx, m.pool)
	if err != nil {
		return registry.StatementAccount{}, err
	}
	agency, err := s.FindAgency(a.agency)
	if err != nil {
		return registry.StatementAccount{}, err
	}
	return s.FindStatementAccount(agency.ID, a.mode == registry.Mode(true), a.code)
}

const missingAgency = "say whose: {usage}, the agency's slug or id"
