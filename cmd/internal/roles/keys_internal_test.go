package roles

import (
	"strings"
	"testing"

	"quittance/internal/erpquery"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// A role that is taken opens no secret of another one's destinations, and proves no outcome of another kind.
func TestRolesHoldOnlyTheirKeys(t *testing.T) {
	t.Parallel()
	holders := map[string][]string{}
	for _, r := range Table() {
		for _, use := range r.Keys {
			holders[use.String()] = append(holders[use.String()], r.Name)
		}
	}
	for use, want := range map[secret.Use]string{
		{Purpose: secret.PurposeSeal, Label: registry.LabelConnector}:       "collect disburse",
		{Purpose: secret.PurposeSeal, Label: registry.LabelWebhook}:         "webhook",
		{Purpose: secret.PurposeSeal, Label: registry.LabelERP}:             "erp",
		{Purpose: secret.PurposeSeal, Label: erpquery.Label}:                "ingress erp notify",
		{Purpose: secret.PurposeSeal, Label: registry.LabelReports}:         "ingress match",
		{Purpose: secret.PurposeSeal, Label: personal.Label}:                "ingress collect notify office disburse",
		{Purpose: secret.PurposeSign, Label: operation.LabelAudit}:          "ingress notify schedule cases office",
		{Purpose: secret.PurposeVerify, Label: secret.LabelDecisions}:       "checkout schedule cases match office",
		{Purpose: secret.PurposeVerify, Label: secret.LabelOfficeDecisions}: "checkout schedule cases match",
		{Purpose: secret.PurposeSign, Label: secret.LabelDecisions}:         "",
		{Purpose: secret.PurposeSign, Label: secret.LabelOfficeDecisions}:   "office",
		{Purpose: secret.PurposeMAC, Label: identity.LabelStaffSignIns}:     "office",
		{Purpose: secret.PurposeSign, Label: secret.LabelStaffRows}:         "cases office",
		{Purpose: secret.PurposeSign, Label: secret.LabelPeopleRows}:        "cases",
		{Purpose: secret.PurposeMAC, Label: secret.LabelCommands("office")}: "office disbursement",
		{Purpose: secret.PurposeSign, Label: secret.LabelRegistryRows}:      "",
		{Purpose: secret.PurposeMAC, Label: secret.LabelWebhookBodies}:      "ingress checkout webhook cashin erp notify",
		{Purpose: secret.PurposeMAC, Label: secret.LabelPayoutRequests}:     "disbursement disburse",
		// Whoever makes outcomes, and who believes them: none of the latter may write the topic.
		{Purpose: secret.PurposeMAC, Label: secret.LabelOutcomes("webhook")}: "webhook schedule journal match",
		{Purpose: secret.PurposeMAC, Label: secret.LabelOutcomes("cashin")}:  "cashin schedule journal match",
		{Purpose: secret.PurposeMAC, Label: secret.LabelOutcomes("erp")}:     "erp schedule journal match",
		{Purpose: secret.PurposeMAC, Label: secret.LabelOutcomes("notify")}:  "notify schedule journal match",
	} {
		if got := strings.Join(holders[use.String()], " "); got != want {
			t.Errorf("%s is held by %q, want %q", use, got, want)
		}
	}
}

func TestKeysOfAnotherRoleAreRefused(t *testing.T) {
	t.Parallel()
	all := secret.GenerateKeys()
	production, developer := &Settings{Program: "quittance"}, &Settings{}
	developer.Options.Loopback, developer.Options.PlainSecrets, developer.Options.Simulators = true, true, true
	webhook, collect := webhookRole(), collectRole()
	of := func(r Role) *secret.Keys { return all.Subset(r.Name, r.Keys) }
	for name, c := range map[string]struct {
		settings *Settings
		role     Role
		keys     *secret.Keys
		want     string
	}{
		"its own":                   {production, webhook, of(webhook), ""},
		"those of another":          {production, collect, of(webhook), `holds the keys of "webhook", which lack seal "connector accounts"`},
		"the mend":                  {production, collect, of(webhook), "make them with `quittance secrets derive collect`"},
		"master keys":               {production, webhook, all, "accept the risk with --accept-master-keys"},
		"master keys, accepted":     {&Settings{AcceptMasterKeys: true}, webhook, all, ""},
		"master keys, developer":    {developer, webhook, all, ""},
		"another's, with more keys": {production, webhook, all.Subset("collect", append(webhook.Keys, collect.Keys...)), ""},
	} {
		err := c.settings.checkKeys(c.role, c.keys)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
