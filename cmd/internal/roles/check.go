package roles

import (
	"errors"
	"fmt"
	"slices"
)

// CheckRole returns what is wrong with the settings of a role, as far as they alone tell it. It connects
// to nothing. Settings that are missing wrap ErrSettings.
func (s *Settings) CheckRole(r Role) error {
	needs := []string{"kafka", "schema-registry"}
	for need, address := range map[Need]string{NeedPostgres: "postgres", NeedClickHouse: "clickhouse"} {
		if slices.Contains(r.Needs, need) {
			needs = append(needs, address)
		}
	}
	slices.Sort(needs)
	errs := []error{s.Need(needs...)}
	if r.Kind == KindProcessor {
		errs = append(errs, s.CheckInstance())
	}
	if r.Kind == KindIngress {
		_, proxies := s.trustedProxies()
		errs = append(errs, s.checkPublicURL("checkout-url", s.CheckoutURL), s.checkDrain(), proxies)
	}
	if r.Kind == KindOffice {
		_, proxies := s.trustedProxies()
		errs = append(errs, s.checkPublicURL("staff-url", s.StaffURL), s.checkDrain(), proxies)
		if s.CheckoutURL != "" {
			errs = append(errs, s.checkPublicURL("checkout-url", s.CheckoutURL))
		}
	}
	if slices.Contains(r.Needs, NeedMasterKeys) {
		keys, err := s.OpenKeys()
		if err == nil {
			err = s.checkKeys(r, keys)
		}
		errs = append(errs, err)
	}
	if slices.Contains(r.Needs, NeedReferenceKey) {
		_, err := s.OpenReferenceKey()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *Settings) checkDrain() error {
	if s.Drain < 0 || s.Drain > longestDrain {
		return fmt.Errorf("--drain %v: must be from 0 to %v", s.Drain, longestDrain)
	}
	return nil
}
