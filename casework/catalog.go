package casework

import "slices"

// Catalog is the kinds of cases of one domain, or of several, with the resolutions that
// people can propose. Lists of kinds and of resolutions keep its order.
type Catalog struct {
	Kinds []Kind
	Exits []Exit
	// Evidence names the details of an event that tell what else is known of a case.
	Evidence []string
}

// Exit is a resolution that people can propose for cases of some kinds.
type Exit struct {
	Resolution Resolution
	Of         []Kind
	// NeedsReference means that the resolution is worthless without its evidence.
	NeedsReference bool
	// NeedsTwo means that it always takes two people, however small the amount is.
	NeedsTwo bool
}

// Join returns a catalog of the kinds and exits of several, in their order.
func Join(list ...Catalog) Catalog {
	var all Catalog
	for _, c := range list {
		all.Kinds, all.Exits = append(all.Kinds, c.Kinds...), append(all.Exits, c.Exits...)
		all.Evidence = append(all.Evidence, c.Evidence...)
	}
	return all
}

// Resolutions returns what people can propose, each once.
func (c Catalog) Resolutions() []Resolution {
	return resolutions(c.Exits, func(Exit) bool { return true })
}

// Allowed returns what people can propose for a kind.
func (c Catalog) Allowed(k Kind) []Resolution {
	return resolutions(c.Exits, func(e Exit) bool { return slices.Contains(e.Of, k) })
}

// Exit returns how a resolution closes a case of a kind. ok is false if it cannot.
func (c Catalog) Exit(k Kind, r Resolution) (e Exit, ok bool) {
	i := slices.IndexFunc(c.Exits, func(e Exit) bool { return e.Resolution == r && slices.Contains(e.Of, k) })
	if i < 0 {
		return Exit{}, false
	}
	return c.Exits[i], true
}

func resolutions(exits []Exit, match func(Exit) bool) (out []Resolution) {
	for _, e := range exits {
		if match(e) && !slices.Contains(out, e.Resolution) {
			out = append(out, e.Resolution)
		}
	}
	return out
}
