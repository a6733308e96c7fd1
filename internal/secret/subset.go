package secret

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Purpose is what a derived key does.
type Purpose string

// The purposes of derived keys.
const (
	// PurposeSeal encrypts and decrypts.
	PurposeSeal Purpose = "seal"
	// PurposeMAC makes and verifies MACs.
	PurposeMAC Purpose = "mac"
	// PurposeSign signs and verifies; PurposeVerify verifies and cannot sign.
	PurposeSign   Purpose = "sign"
	PurposeVerify Purpose = "verify"
)

// Use is one derived key: what it does, and its label. The same label with another purpose is another
// key, except that PurposeVerify is the public part of PurposeSign.
type Use struct {
	Purpose Purpose
	Label   string
}

// String returns for example `seal "webhook secrets"`.
func (u Use) String() string { return fmt.Sprintf("%s %q", u.Purpose, u.Label) }

// Subset returns the keys of one role: the derived keys of its uses, of each master key. Nothing else can
// be derived from them. A role has no key of PurposeMAC or PurposeSign of a master key that is marked
// open.
func (k *Keys) Subset(role string, uses []Use) *Keys {
	var out []master
	for i := range k.masters() {
		m := &k.masters()[i]
		held := map[Use][]byte{}
		for _, use := range uses {
			if m.open && use.Purpose != PurposeSeal {
				continue
			}
			if key, ok := k.derive(m, use); ok {
				held[use] = key
			}
		}
		out = append(out, master{id: m.id, open: m.open, held: held})
	}
	return newKeys(role, out)
}

// Role returns the role for which Subset derived the keys. It is empty for master keys.
func (k *Keys) Role() string {
	if k == nil || k.ring == nil {
		return ""
	}
	return k.ring().role
}

// Missing returns those of the uses for which the newest key is not held. Of master keys none is missing.
func (k *Keys) Missing(uses []Use) []Use {
	masters := k.masters()
	if len(masters) == 0 {
		return uses
	}
	return slices.DeleteFunc(slices.Clone(uses), func(use Use) bool {
		_, held := k.derive(&masters[0], use)
		if !held && use.Purpose == PurposeVerify {
			_, held = k.derive(&masters[0], Use{PurposeSign, use.Label})
		}
		return held
	})
}

// Holds reports whether the newest key has the derivation of a use.
func (k *Keys) Holds(use Use) bool { return len(k.Missing([]Use{use})) == 0 }

// subsetHeader begins the text form of the keys of a role. The name of the role follows, and then lines
// `id[:open] purpose base64 label`, newest master key first.
const subsetHeader = "quittance keys of "

func revealSubset(role string, masters []master) string {
	var out strings.Builder
	out.WriteString(subsetHeader + role + "\n")
	for _, m := range masters {
		id := m.id
		if m.open {
			id += ":open"
		}
		uses := slices.SortedFunc(maps.Keys(m.held), func(a, b Use) int { return strings.Compare(a.String(), b.String()) })
		for _, use := range uses {
			fmt.Fprintf(&out, "%s %s %s %s\n", id, use.Purpose, base64.StdEncoding.EncodeToString(m.held[use]), use.Label)
		}
		if len(uses) == 0 {
			fmt.Fprintf(&out, "%s\n", id)
		}
	}
	return out.String()
}

// parseSubset reads what revealSubset wrote. Errors are ErrRoleKeys and name the line.
func parseSubset(text string) (*Keys, error) {
	lines := bufio.NewScanner(strings.NewReader(strings.TrimSpace(text)))
	lines.Scan()
	role := strings.TrimSpace(strings.TrimPrefix(lines.Text(), subsetHeader))
	var masters []master
	for n := 2; lines.Scan(); n++ {
		id, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		id, mark, marked := strings.Cut(id, ":")
		if !validID(id) || marked && mark != "open" {
			return nil, fmt.Errorf("line %d: %w", n, ErrRoleKeys)
		}
		i := slices.IndexFunc(masters, func(m master) bool { return m.id == id })
		if i < 0 {
			i = len(masters)
			masters = append(masters, master{id: id, open: marked, held: map[Use][]byte{}})
		}
		if rest == "" {
			continue
		}
		use, key, err := parseUse(rest)
		if err != nil || masters[i].open != marked {
			return nil, fmt.Errorf("line %d: %w", n, ErrRoleKeys)
		}
		masters[i].held[use] = key
	}
	if role == "" || len(masters) == 0 || masters[0].open {
		return nil, ErrRoleKeys
	}
	return newKeys(role, masters), nil
}

func parseUse(text string) (Use, []byte, error) {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 || !slices.Contains([]Purpose{PurposeSeal, PurposeMAC, PurposeSign, PurposeVerify}, Purpose(parts[0])) {
		return Use{}, nil, ErrRoleKeys
	}
	key, err := base64.StdEncoding.Strict().DecodeString(parts[1])
	if err != nil || len(key) != KeySize {
		return Use{}, nil, ErrRoleKeys
	}
	return Use{Purpose(parts[0]), parts[2]}, key, nil
}
