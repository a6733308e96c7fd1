package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/citizens"
	"quittance/internal/connector/all"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/personal"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
)

// Command returns the command `secrets`.
func Command() cli.Command {
	return cli.Command{Use: "secrets", Short: "Derive the keys of a role, seal secrets with the newest master key, and make the reference key", Commands: []cli.Command{derive(), reseal(), referenceKey()}}
}

const resealPlan = `This seals every secret in Postgres with the newest master key, %q.
Every role must have that key in its list first: restart all of them with the new list before you continue. A role without it cannot open what is sealed now.
Roles may run meanwhile. An interrupted run may be started again.`

func reseal() cli.Command {
	var yes, check bool
	return cli.Command{
		Use: "reseal", Short: "Seal every secret with the newest master key, so that older keys can go", JSON: "the counts",
		Examples: []string{"secrets reseal", "secrets reseal --check"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.YesFlag(f, &yes)
			f.BoolVar(&check, "check", false, "change nothing, and say which master keys are needed no more")
		},
		Check: cli.Quiet,
		Run: func(ctx context.Context, m *cli.Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			if check {
				return checkMasterKeys(ctx, m, keys)
			}
			if err := m.Agree(yes, fmt.Sprintf(resealPlan, keys.Entries()[0].ID)); err != nil {
				return err
			}
			return m.OnDatabase(ctx, func(ctx context.Context, m *cli.Meta) error { return resealAll(ctx, m, keys) })
		},
	}
}

// sealedTables are the tables of personal data and of keys beside the registry's secrets.
var sealedTables = []personal.Sealed{personal.DataKeys, citizens.SealedAddresses, identity.SealedContacts, receipts.SealedKeys, intake.Originals}

// resealBatch is the number of values in a transaction.
const resealBatch = 500

// resealAll seals every secret in the database with the newest key.
func resealAll(ctx context.Context, m *cli.Meta, keys *secret.Keys) error {
	newest := keys.Entries()[0].ID
	report := func(done int) {
		if done > 0 {
			_, _ = fmt.Fprintf(m.Err, "values sealed with %q: %d\n", newest, done)
		}
	}
	if _, err := registry.SealReports(ctx, m.Pool, keys, all.Operators(), m.By, m.Now); err != nil {
		return err
	}
	counts, err := registry.Reseal(ctx, m.Pool, keys, m.By, m.Now, resealBatch, report)
	for _, rows := range sealedTables {
		if err == nil {
			var people secret.Resealed
			people, err = rows.Reseal(ctx, m.Pool, keys, m.By, m.Now, resealBatch, report)
			counts = append(counts, people)
		}
	}
	if err == nil {
		var proofs []secret.Resealed
		proofs, err = citizens.ProveAgain(ctx, m.Pool, keys, m.By, m.Now)
		counts = append(counts, proofs...)
	}
	if err != nil {
		return fmt.Errorf("%w; what was sealed until then is kept: give the command again", err)
	}
	unopened := 0
	for _, c := range counts {
		unopened += c.Unopened
	}
	err = m.Show(render.Object{"key", newest, "unopened", unopened, "tables", render.Mapped(counts, func(c secret.Resealed) render.Object {
		return render.Object{"table", c.Table, "sealed", c.Sealed, "before", c.Before, "unopened", c.Unopened}
	})}, func(p *render.Page) {
		p.Table("", "TABLE,SEALED NOW,SEALED BEFORE,DO NOT OPEN", render.Mapped(counts, func(c secret.Resealed) []any {
			return []any{c.Table, c.Sealed, c.Before, c.Unopened}
		}))
		p.Say("`%s secrets reseal --check` says when the older keys can go.", m.Program)
	})
	if err == nil && unopened > 0 {
		err = fmt.Errorf("%s as before, sealed with another master key: add that key and give the command again, or replace those secrets", render.CountedIs(unopened, "value"))
	}
	return err
}

// neededKey says what still needs a master key.
type neededKey struct {
	secret.KeyEntry
	newest, known bool
	tables        map[string]int
	values        int
	sessions      sessions.SealedSessions
}

// canGo reports whether the key can be removed from the list.
func (k neededKey) canGo() bool { return !k.newest && k.values == 0 && k.sessions.Open == 0 }

// checkMasterKeys says which keys are needed no more. Keys that are needed are an error.
func checkMasterKeys(ctx context.Context, m *cli.Meta, keys *secret.Keys) error {
	var tables []secret.SealedValues
	var open map[string]sessions.SealedSessions
	err := m.WithBase(ctx, m.Log, func(ctx context.Context, b *roles.Base) (err error) {
		if err := b.OpenPostgres(); err != nil {
			return err
		}
		if tables, err = registry.Sealed(ctx, b.Pool); err != nil {
			return err
		}
		for _, rows := range sealedTables {
			people, err := rows.Count(ctx, b.Pool)
			if err != nil {
				return err
			}
			tables = append(tables, people)
		}
		proofs, err := citizens.Proofs(ctx, b.Pool, keys)
		if err != nil {
			return err
		}
		tables = append(tables, proofs...)
		open, err = sessions.Sealed(ctx, b.KafkaConfig(), b.Topology, b.Codec)
		return err
	})
	if err != nil {
		return err
	}
	needed := neededKeys(keys.Entries(), tables, open)
	err = m.Show(render.Object{"keys", render.Mapped(needed, neededJSON)}, func(p *render.Page) {
		for _, k := range needed {
			p.Say("%s", k.text())
		}
	})
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(needed, func(k neededKey) bool { return !k.known }); i >= 0 {
		return fmt.Errorf("values were sealed with master key %q, which is not in the list: add it, or replace those secrets", needed[i].ID)
	}
	var keep []string
	for _, k := range needed {
		if !k.newest && !k.canGo() {
			keep = append(keep, fmt.Sprintf("%q", k.ID))
		}
	}
	if len(keep) > 0 {
		return fmt.Errorf("still needed: %s", strings.Join(keep, ", "))
	}
	return nil
}

// neededKeys joins the counts by key: those of the list first, newest first.
func neededKeys(entries []secret.KeyEntry, tables []secret.SealedValues, open map[string]sessions.SealedSessions) []neededKey {
	var out []neededKey
	for i, e := range entries {
		out = append(out, neededKey{KeyEntry: e, newest: i == 0, known: true})
	}
	of := func(id string) *neededKey {
		i := slices.IndexFunc(out, func(k neededKey) bool { return k.ID == id })
		if i < 0 {
			i = len(out)
			out = append(out, neededKey{KeyEntry: secret.KeyEntry{ID: id}})
		}
		if out[i].tables == nil {
			out[i].tables = map[string]int{}
		}
		return &out[i]
	}
	for _, t := range tables {
		for id, n := range t.Keys {
			k := of(id)
			k.tables[t.Table] += n
			k.values += n
		}
	}
	for id, s := range open {
		of(id).sessions = s
	}
	return out
}

func neededJSON(k neededKey) render.Object {
	tables := render.Object{}
	for _, name := range slices.Sorted(maps.Keys(k.tables)) {
		tables = append(tables, name, k.tables[name])
	}
	return render.Object{
		"id", k.ID, "newest", k.newest, "open_only", k.Open, "in_list", k.known, "values", k.values, "tables", tables,
		"open_sessions", k.sessions.Open, "open_sessions_until", k.sessions.Until, "can_go", k.canGo(),
	}
}

// text says for people whether a key can go.
func (k neededKey) text() string {
	var needs []string
	for _, name := range slices.Sorted(maps.Keys(k.tables)) {
		needs = append(needs, fmt.Sprintf("%s (%d)", name, k.tables[name]))
	}
	if k.sessions.Open > 0 {
		needs = append(needs, fmt.Sprintf("open sessions (%d, the last expires at %s)", k.sessions.Open, render.Moment(k.sessions.Until)))
	}
	sealed := strings.Join(needs, ", ")
	switch {
	case !k.known:
		return fmt.Sprintf("Master key %q is not in the list and sealed %s.", k.ID, sealed)
	case k.newest && sealed == "":
		return fmt.Sprintf("Master key %q is the newest and has sealed nothing yet.", k.ID)
	case k.newest:
		return fmt.Sprintf("Master key %q is the newest and sealed %s.", k.ID, sealed)
	case k.values > 0:
		return fmt.Sprintf("Master key %q is needed for %s: `quittance secrets reseal` seals the values in tables again.", k.ID, sealed)
	case k.sessions.Open > 0:
		return fmt.Sprintf("Master key %q is needed for %s.", k.ID, sealed)
	case !k.Open:
		return fmt.Sprintf("Master key %q is needed no more. It still verifies callback addresses and clerks' cookies: mark it :open first, or remove it, which ends both.", k.ID)
	}
	return fmt.Sprintf("Master key %q is needed no more: remove it from QUITTANCE_MASTER_KEYS and restart every role.", k.ID)
}

// referenceKey makes the reference key.
func referenceKey() cli.Command {
	return cli.Command{
		Use: "reference-key", Short: "Make the reference key of the installation, or complete the one that it has", JSON: "the key",
		Examples: []string{"secrets reference-key > reference.key"}, Check: cli.Quiet,
		Run: func(ctx context.Context, m *cli.Meta) error {
			var key *secret.ReferenceKey
			var said string
			err := m.WithBase(ctx, m.Log, func(ctx context.Context, b *roles.Base) (err error) {
				if err := b.OpenPostgres(); err != nil {
					return err
				}
				known, made, err := sessions.KnownFingerprint(ctx, sessions.ReferencesConfig{Postgres: b.Pool, Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec})
				if err != nil {
					return err
				}
				key, said, err = completeReferenceKey(m, known, made)
				return err
			})
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintln(m.Err, m.Naming(said)) // stdout has nothing but the key
			return m.Show(render.Object{"reference_key", key.Reveal()}, func(p *render.Page) { p.Say("%s", key.Reveal()) })
		},
	}
}

// completeReferenceKey returns the reference key of an installation. made says that it has
// made reference numbers, with the permutation that known is the fingerprint of.
func completeReferenceKey(m *cli.Meta, known int64, made bool) (key *secret.ReferenceKey, said string, err error) {
	key = secret.GenerateReferenceKey()
	if m.ReferenceKey != "" {
		if key, err = m.OpenReferenceKey(); err != nil {
			return nil, "", err
		}
		if !made || sessions.KeyFingerprint(key.Permutation()) == known {
			return nil, "", errors.New("there is nothing to make: QUITTANCE_REFERENCE_KEY is set and is the key of this installation")
		}
	}
	if !made {
		return key, "A new reference key. Set it as QUITTANCE_REFERENCE_KEY of ingress and of sink notify, and where links and erase are typed. It never changes: keep it as safe as the backups of the database.", nil
	}
	keys, err := m.OpenKeys()
	if err != nil {
		return nil, "", err
	}
	for _, former := range keys.FormerPermutations() {
		if sessions.KeyFingerprint(former) == known {
			return key.Carrying(former), "The reference key of this installation. It carries the permutation with which earlier releases have made reference numbers, so that none is made again. " +
				"Set it as QUITTANCE_REFERENCE_KEY of ingress and of sink notify, and where links and erase are typed, in place of another one. It never changes: keep it as safe as the backups of the database.", nil
		}
	}
	return nil, "", errors.New("this installation has made reference numbers with a key that is neither QUITTANCE_REFERENCE_KEY nor from the master keys: " +
		"put the former QUITTANCE_REFERENCE_KEY back, or add the master key with which the installation began to QUITTANCE_MASTER_KEYS, marked :open, and give the command again; another key would make numbers that are printed already")
}
