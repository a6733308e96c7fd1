package registryfile

import (
	"fmt"
	"slices"
	"strings"

	"quittance/internal/cashin"
	"quittance/internal/connector"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/registry"
)

// check reads a file and finds all its faults: in itself and in comparison with the
// database. The contents are complete only when there are no faults.
func check(text []byte, opts Options, tx *registry.Tx, identities *identity.Tx, pairs *cashin.Tx) (contents, []form.Fault) {
	f, err := read(text)
	if err != nil {
		return contents{}, []form.Fault{{Rule: "syntax", Message: "The registry file " + err.Error() + "."}}
	}
	read := parser{opts.Developer, opts.Operators, tx.Now}.parse(f)
	c := checker{
		developer: opts.Developer, operators: opts.Operators, known: tx.Before, payoutModes: tx.PayoutModes, identities: identities, pairs: pairs, faults: f.Faults(),
		agencies: map[string]bool{}, slugs: map[string]string{}, serviceIDs: map[string]bool{}, applications: map[string]bool{},
		integrators: map[string]string{}, keys: map[registry.Digest]bool{}, cashin: map[registry.Digest]bool{},
	}
	c.file(read)
	if opts.Developer {
		for k := range tx.Before.Accounts {
			if k.Live {
				c.fault("", "developer", "The registry holds a live %s account of agency %s: developer mode refuses it", k.Name, k.AgencyID)
			}
		}
	}
	return read, c.faults
}

// checker compares a file with the database and its parts with each other.
type checker struct {
	developer bool
	operators connector.Table
	known     *registry.Snapshot
	// payoutModes returns the payout accounts of the database by payment mode.
	payoutModes func(agencyID string, live bool) map[string]string
	identities  *identity.Tx
	pairs       *cashin.Tx
	faults      []form.Fault

	// What the file holds.
	agencies, serviceIDs, applications map[string]bool
	keys, cashin                       map[registry.Digest]bool
	// What the file and the database hold.
	slugs       map[string]string // agency by slug
	integrators map[string]string // application by agency
}

// fault adds a fault at a path. An empty path means the whole file.
func (c *checker) fault(path, rule, message string, args ...any) {
	text := fmt.Sprintf(message, args...) + "."
	if path != "" {
		text = path + " " + text
	}
	c.faults = append(c.faults, form.Fault{Field: path, Rule: rule, Message: text})
}

// once adds a fault when a value occurs for the second time. It reports whether this is
// the first time.
func once[K comparable](c *checker, seen map[K]bool, value K, path string) bool {
	if seen[value] {
		c.fault(path, "duplicate", "occurs twice")
		return false
	}
	seen[value] = true
	return true
}

func (c *checker) file(f contents) {
	for id, a := range c.known.Agencies {
		c.slugs[a.Slug] = id
		if app := c.known.IntegratorOf(id); app != "" {
			c.integrators[id] = app
		}
	}
	// Applications that stop being integrators come first, so that the order in the file
	// does not matter.
	for _, a := range f.agencies {
		for _, app := range a.applications {
			if app.Integrator != nil && !*app.Integrator && c.integrators[a.ID] == app.ID {
				delete(c.integrators, a.ID)
			}
		}
	}
	for _, a := range f.agencies {
		c.agency(a)
	}
	c.endpoints(f.platformEndpoints)
	for _, k := range f.platformKeys {
		c.key(k, identity.Key{})
		for i, agency := range k.agencies {
			path := fmt.Sprintf("%s.agencies[%d]", k.path, i)
			switch {
			case agency == "": // a fault already
			case !c.agencies[agency] && c.known.Agencies[agency].ID == "":
				c.fault(path, "unknown", "is not an agency of the file or the registry")
			case c.integrators[agency] == "":
				c.fault(path, "integrator", "is an agency without an integrator application, which platform keys need: mark one of its applications with integrator: true")
			}
		}
	}
}

func (c *checker) agency(a agency) {
	if a.ID != "" {
		if owner, taken := c.slugs[a.Slug]; taken && owner != a.ID {
			c.fault(a.path+".slug", "taken", "is the slug of agency %s", owner)
		} else if a.Slug != "" {
			// Another agency can take the previous slug only with the next file, so that
			// the order in a file does not matter.
			c.slugs[a.Slug] = a.ID
		}
		once(c, c.agencies, a.ID, a.path+".id")
	}
	codes := c.services(a)
	mappings := map[string]bool{}
	for _, m := range a.mappings {
		if m.ErpCode != "" {
			once(c, mappings, m.ErpCode, m.path+".erp_code")
		}
		c.serviceExists(a.ID, codes, m.path+".service", m.ServiceCode)
	}
	if a.defaultService != nil {
		c.serviceExists(a.ID, codes, a.path+".default_service", *a.defaultService)
	}
	fees := map[[2]string]bool{}
	for i, f := range a.fees {
		if f.Channel != "" {
			once(c, fees, [2]string{f.Channel, f.Currency}, fmt.Sprintf("%s.fees[%d]", a.path, i))
		}
	}
	for _, app := range a.applications {
		c.application(a, app)
	}
	c.portal(a)
	c.payouts(a)
	c.statementAccounts(a)
	clerks := map[string]bool{}
	for _, clerk := range a.clerks {
		if a.ID == "" || clerk.Code == "" {
			continue // a fault already: the holder of the keys is unknown
		}
		once(c, clerks, clerk.Code, clerk.path+".code")
		c.heldKeys(clerk.keys, clerk.holder())
	}
}

func (c *checker) services(a agency) map[string]bool {
	codes := map[string]bool{}
	for _, s := range a.services {
		if s.Code != "" {
			once(c, codes, s.Code, s.path+".code")
		}
		if s.ID == "" {
			continue
		}
		once(c, c.serviceIDs, s.ID, s.path+".id")
		if a.ID == "" {
			continue // a fault already: there is nothing to compare with
		}
		if known, ok := c.known.Services[s.ID]; ok && known.AgencyID != a.ID {
			c.fault(s.path+".id", "taken", "is a service of another agency")
		}
		if known, ok := c.known.Service(a.ID, s.Code); ok && known.ID != s.ID {
			c.fault(s.path+".code", "taken", "is the code of service %s of this agency", known.ID)
		}
	}
	return codes
}

func (c *checker) serviceExists(agencyID string, codes map[string]bool, path, code string) {
	if agencyID == "" || code == "" || codes[code] {
		return
	}
	if _, ok := c.known.Service(agencyID, code); !ok {
		c.fault(path, "unknown", "is not a service of this agency")
	}
}

func (c *checker) application(a agency, app application) {
	// Without a valid id the application cannot be compared with the database.
	if app.ID == "" || a.ID == "" || !once(c, c.applications, app.ID, app.path+".id") {
		return
	}
	if known, ok := c.known.Applications[app.ID]; ok && known.AgencyID != a.ID {
		c.fault(app.path+".id", "taken", "is an application of another agency")
		return
	}
	if app.ID == registry.PortalID(a.ID) {
		c.fault(app.path+".id", "taken", "is the application of the agency's citizen portal: set it in portal of the agency")
		return
	}
	if app.Integrator != nil && *app.Integrator {
		if other := c.integrators[a.ID]; other != "" && other != app.ID {
			c.fault(app.path+".integrator", "taken", "is taken by application %s: an agency has one integrator application", other)
		} else {
			c.integrators[a.ID] = app.ID
		}
	}
	c.heldKeys(app.keys, app.holder())
	c.endpoints(app.endpoints)
	c.cashinPair(app)
}

// portal checks the citizen portal of an agency.
func (c *checker) portal(a agency) {
	if a.portal == nil || a.ID == "" {
		return
	}
	// The mode of a portal is that of its installation.
	live := !c.developer
	inFile := slices.ContainsFunc(a.erp, func(e registry.ERPSettings) bool { return e.Live == live })
	if !inFile && !c.known.HasERP(a.ID, live) {
		c.fault(a.portal.path, "erp", "needs an ERP, which says what citizens owe: add erp.%s to the agency", registry.Mode(live))
	}
	if _, known := c.known.PortalOf(a.ID); !known && a.portal.Offers == nil {
		c.fault(a.portal.path+".offers", "required", "is required: %s", strings.Join(registry.OfferIDs(), ", "))
	}
	c.endpoints(a.portal.endpoints)
}

// cashinPair checks the pair of an application.
func (c *checker) cashinPair(app application) {
	if app.pair.apiKey.Empty() {
		return
	}
	d := registry.DigestOf(app.pair.apiKey)
	known, same, ok := c.pairs.ByAPIKey(app.pair.apiKey, app.pair.secretKey)
	switch {
	case c.cashin[d], ok && known.ApplicationID != app.ID:
		c.fault(app.path+".cashin.api_key", "taken", "is the key of another application")
	case ok && (!same || known.Live != app.pair.live):
		c.fault(app.path+".cashin.api_key", "known", "is known with another secret_key or mode: give a new api_key, or what it was given first")
	}
	c.cashin[d] = true
}

// heldKeys checks the keys of an application or a clerk.
func (c *checker) heldKeys(keys []key, holder identity.Key) {
	added := map[bool]int{}
	for _, k := range keys {
		holder.Live = k.live
		if c.key(k, holder) {
			if added[k.live]++; c.identities.InForce(holder)+added[k.live] > identity.MaxKeys {
				c.fault(k.path, "too_many", "is one key too many: at most %d %s keys of a holder may be in force", identity.MaxKeys, registry.Mode(k.live))
			}
		}
	}
}

// key checks a key and reports whether it is new.
func (c *checker) key(k key, holder identity.Key) (added bool) {
	if k.secret.Empty() {
		return false // a fault already
	}
	once(c, c.keys, registry.DigestOf(k.secret), k.path+".secret")
	known, ok := c.identities.KeyBySecret(k.secret)
	if ok && !known.SameHolder(holder) {
		c.fault(k.path+".secret", "taken", "is a key of another holder")
	}
	return !ok
}

func (c *checker) endpoints(endpoints []endpoint) {
	urls := map[string]bool{}
	for _, e := range endpoints {
		if e.Url != "" {
			once(c, urls, e.Url, e.path+".url")
		}
	}
}
