package roles

import "quittance/sinks/cashin"

func cashinRole() Role {
	return deliveryRole(cashin.Kind, Role{Short: "tells partners of the deprecated cash-in surface about their payments", Run: (*Base).cashin})
}

// cashin is the sink that tells partners of the deprecated cash-in surface.
func (b *Base) cashin() error {
	policy, err := cashin.NewPolicy(cashin.Config{Applications: b.Registry, Loopback: b.Loopback})
	if err != nil {
		return err
	}
	return b.deliver(cashin.Kind, policy)
}
