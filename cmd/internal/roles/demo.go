package roles

import (
	"fmt"
	"strings"

	"quittance/internal/cashin"
	"quittance/internal/identity"
	"quittance/internal/registry"
)

// refuseDemoSecrets returns an error that names the secrets of the demo registry in the
// database and how to replace each. Developers' installations may have them.
func (b *Base) refuseDemoSecrets(reg *registry.Registry, ids *identity.Identities) error {
	if b.PlainSecrets {
		return nil
	}
	var found []string
	for _, k := range ids.DemoKeys() {
		noun := "keys"
		if k.ClerkCode != "" {
			noun = "clerks"
		}
		found = append(found, fmt.Sprintf("key %s of %s: end it with `%s %s revoke %s`", k.ID, k.Owner, b.Program, noun, k.ID))
	}
	for _, s := range reg.DemoSecrets() {
		mend := "replace it with `quittance-dev seed FILE`"
		if s.EndpointID != "" {
			mend = fmt.Sprintf("replace it with `%s endpoints rotate-secret %s --overlap 0`", b.Program, s.EndpointID)
		}
		found = append(found, s.Where+": "+mend)
	}
	pairs, err := cashin.DemoPairs(b.ctx, b.Pool)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		found = append(found, fmt.Sprintf("the cash-in credentials of %s (%s): replace them with `%s cashin rotate %s`", p.Application, p.Agency, b.Program, p.ApplicationID))
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("the database holds secrets of the demo registry, which everybody can read:\n  %s", strings.Join(found, "\n  "))
}
