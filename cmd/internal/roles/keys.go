package roles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"quittance/ingress/counter"
	"quittance/ingress/pages"
	"quittance/internal/batchseal"
	"quittance/internal/cashin"
	"quittance/internal/citizens"
	"quittance/internal/connector"
	"quittance/internal/deliveries"
	"quittance/internal/drafts"
	"quittance/internal/erpquery"
	"quittance/internal/identity"
	"quittance/internal/journal"
	"quittance/internal/notify"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
)

func seals(labels ...string) []secret.Use { return uses(secret.PurposeSeal, labels) }
func macs(labels ...string) []secret.Use  { return uses(secret.PurposeMAC, labels) }

func signs(labels ...string) []secret.Use { return uses(secret.PurposeSign, labels) }

func verifies(labels ...string) []secret.Use { return uses(secret.PurposeVerify, labels) }

func uses(purpose secret.Purpose, labels []string) (out []secret.Use) {
	for _, label := range labels {
		out = append(out, secret.Use{Purpose: purpose, Label: label})
	}
	return out
}

// edgeKeys are the keys of the ingress: of its cookies and addresses, of what citizens and integrators hand
// in, of receipts, of operators' reports, and of questions to ERPs; and the public keys of papers of batches, which it publishes. It opens no secret of calls to operators
// or ERPs, and none of webhooks.
func edgeKeys() []secret.Use {
	return slices.Concat(
		seals(counter.LabelSessions, counter.LabelDevices, citizens.LabelKnownBrowser, citizens.SealedAddresses.Label, drafts.LabelClientSecret,
			personal.Label, receipts.SealedKeys.Label, connector.LabelRedirect, registry.LabelReports, erpquery.Label),
		seals(pages.Labels()...),
		macs(connector.LabelCallback, notify.LabelReports, secret.LabelListen, cashin.LabelTokens, identity.LabelSignIns, citizens.LabelAccounts),
		verifies(batchseal.Labels()...),
	)
}

// notifyKeys are the keys of what people are told: their addresses, with the proof whose they are, receipts in
// attachments, and the addresses of providers' reports. It may not write the rows of accounts.
func notifyKeys() []secret.Use {
	return slices.Concat(
		seals(personal.Label, citizens.SealedAddresses.Label, citizens.LabelKnownBrowser, identity.SealedContacts.Label, receipts.SealedKeys.Label, erpquery.Label),
		macs(notify.LabelReports, citizens.LabelAccounts), verifies(journal.LabelCloses),
	)
}

// sharedKeys are the keys that follow from what a role reads and writes: those that prove its commands, of
// which the processor has those of all senders; those of bodies, where they are made, sent or sent again; that of
// rows of the audit table; and the public one of the rows that decide.
func sharedKeys(r Role) (out []secret.Use) {
	switch {
	case r.Kind == KindProcessor:
		for _, sender := range r.Senders {
			out = append(out, macs(secret.LabelCommands(sender))...)
		}
	case slices.Contains(r.Writes, schemas.Checkout.Commands), slices.Contains(r.Writes, schemas.Disbursement.Commands):
		out = macs(secret.LabelCommands(r.Name))
	}
	_, delivers := DeliveryKinds(nil).Of(deliveries.Kind(r.Name))
	makes := r.Kind != KindProcessor || slices.Contains(r.Writes, schemas.TopicWebhooks)
	if makes && r.Kind != KindOffice && (r.Kind != KindSink || delivers == nil) {
		out = append(out, macs(secret.LabelWebhookBodies)...)
	}
	if slices.Contains(r.Rows, record[0]) {
		out = append(out, signs(operation.LabelAudit)...)
	}
	if slices.Contains(r.Needs, NeedPostgres) {
		out = append(out, verifies(secret.LabelRegistryRows, secret.LabelStaffRows, secret.LabelPeopleRows)...)
	}
	return out
}

// CheckKeysOf refuses keys of a role that lack one that the named role needs. A name that is no role's stands
// for the role that the keys name.
func (s *Settings) CheckKeysOf(name string, keys *secret.Keys) error {
	table := Table()
	called := func(name string) int { return slices.IndexFunc(table, func(r Role) bool { return r.Name == name }) }
	i := called(name)
	if i < 0 {
		i = called(keys.Role())
	}
	if i < 0 {
		return fmt.Errorf("QUITTANCE_MASTER_KEYS holds the keys of %q: there is no such role", keys.Role())
	}
	return s.checkKeys(table[i], keys)
}

// checkKeys refuses keys that are those of another role or lack one that the role needs, and in production
// the master keys themselves: whoever takes this process could then open every secret.
func (s *Settings) checkKeys(r Role, keys *secret.Keys) error {
	derive := fmt.Sprintf("make them with `%s secrets derive %s` where the master keys are", cmp.Or(s.Program, "quittance"), r.Name)
	if keys.Role() == "" {
		if s.Developer() || s.AcceptMasterKeys {
			return nil
		}
		return errors.New("QUITTANCE_MASTER_KEYS holds the master keys, which open every secret of the service; a role has its own keys only: " + derive + ", or accept the risk with --accept-master-keys")
	}
	missing := keys.Missing(r.Keys)
	if len(missing) == 0 {
		return nil
	}
	names := make([]string, len(missing))
	for i, use := range missing {
		names[i] = use.String()
	}
	return fmt.Errorf("QUITTANCE_MASTER_KEYS holds the keys of %q, which lack %s: %s", keys.Role(), strings.Join(names, ", "), derive)
}
