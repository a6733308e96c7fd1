package roles

import (
	"strings"

	"quittance/internal/papers"
	"quittance/internal/receipts"
)

// receiptKeys opens the keys that sign receipts; receipts.ErrNoKeys says that whoever sets up the
// installation has made none. The role has opened the registry and has a checkout URL.
func (b *Base) receiptKeys() (*receipts.Store, error) {
	return b.opened.receipts.open(func() (*receipts.Store, error) {
		store, err := receipts.NewStore(receipts.StoreConfig{Pool: b.Pool, Keys: b.Keys, PublicURL: strings.TrimSuffix(b.CheckoutURL, "/")})
		if err == nil {
			_, err = store.Keys(b.ctx)
		}
		return store, err
	})
}

// agencySlug returns the slug of an agency, as receipts name it.
func (b *Base) agencySlug(agencyID string) string {
	a, _ := b.Registry.Agency(agencyID)
	return a.Slug
}

// papers returns the maker of notices and receipts, for roles that have opened the registry and
// have a checkout URL.
func (b *Base) papers() (*papers.Maker, error) {
	dues, err := b.Dues()
	if err != nil {
		return nil, err
	}
	keys, err := b.receiptKeys()
	if err != nil {
		return nil, err
	}
	return papers.NewMaker(papers.Config{
		Registry: b.configuration(), Contacts: b.Personal, Dues: dues, Tokens: keys, Base: strings.TrimSuffix(b.CheckoutURL, "/"), Now: b.Now, Log: b.Log,
	})
}

// agencyNames returns the full names of all agencies by their slugs.
func (b *Base) agencyNames() map[string]string {
	out := map[string]string{}
	for _, a := range b.Registry.Agencies() {
		out[a.Slug] = a.Name
	}
	return out
}
