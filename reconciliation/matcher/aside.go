package matcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/cases"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// ErrSetAside says that the sink journal has set aside a record that a run needs, so that ClickHouse has no
// rows of it. The run would take the record for read, and no later run would look for its rows.
var ErrSetAside = errors.New("the sink journal has set aside a record that the run needs, and the case of that record is open")

// complete returns ErrSetAside while the sink journal has set aside a record below the watermarks whose
// case nobody has closed. The caller has waited for the sink, which writes a record to its poison topic before
// it passes it. The topic forgets records after a while; the cases do not say whose they were, so that such a record stops the
// accounts of all agencies whose records share its partition.
func (r *run) complete(ctx context.Context, adm *kadm.Client) error {
	topic := r.cfg.Kafka.Prefix + schemas.TopicPoisonJournal
	spans, err := kafka.Bounds(ctx, adm, topic)
	if err != nil {
		return err
	}
	sources, at, seen := r.sources(), map[string]string{}, map[string]bool{} // positions of records, by case
	need := func(name string, c cases.Case) {
		if r.reads(name, sources[name], c.Evidence) {
			at[c.ID] = strings.Join([]string{name, c.Evidence[cases.EvidencePartition], c.Evidence[cases.EvidenceOffset]}, "/")
		}
	}
	if err := r.cfg.Kafka.Read(ctx, topic, spans, nil, func(rec *kgo.Record) (bool, error) {
		name, c := strings.TrimPrefix(consume.Origin(rec), r.cfg.Kafka.Prefix), cases.ReadPoison(schemas.TopicPoisonJournal, rec)
		seen[c.ID] = true
		if agency, _, _ := strings.Cut(string(rec.Key), "/"); !r.ofAnother(agency) {
			need(name, c)
		}
		return true, nil
	}); err != nil {
		return fmt.Errorf("reading %s: %w", topic, err)
	}
	store := cases.NewStore(r.cfg.Pool)
	left, err := store.OpenPoison(ctx, schemas.TopicPoisonJournal)
	if err != nil {
		return err
	}
	for _, c := range left {
		if !seen[c.ID] {
			need(strings.TrimPrefix(c.Evidence[cases.EvidenceTopic], r.cfg.Kafka.Prefix), c)
		}
	}
	if len(at) == 0 {
		return nil
	}
	open, err := store.NotClosed(ctx, slices.Collect(maps.Keys(at)))
	if err != nil || len(open) == 0 {
		return err
	}
	slices.SortFunc(open, func(a, b string) int { return strings.Compare(at[a], at[b]) })
	return fmt.Errorf("%w: %s (%s)%s: mend the cause, write its rows with `quittance replay %s --to journal --since TIME`, then propose and approve `acknowledge` of the case; the run is tried again",
		ErrSetAside, open[0], at[open[0]], andMore(len(open)-1), schemas.TopicPoisonJournal)
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// ofAnother reports whether the registry knows an agency, and it is not that of the run.
func (r *run) ofAnother(agency string) bool {
	_, known := r.cfg.Registry.Agency(agency)
	return known && agency != r.account.AgencyID
}

// reads reports whether a record of a topic, of which the run reads partitions, is below the watermarks. position
// is the evidence of its case. A record that the first release set aside does not say where it stood: it may be.
func (r *run) reads(topic string, partitions []int32, position map[string]string) bool {
	partition, err := strconv.ParseInt(position[cases.EvidencePartition], 10, 32)
	offset, err2 := strconv.ParseInt(position[cases.EvidenceOffset], 10, 64)
	if err != nil || err2 != nil {
		return len(partitions) > 0
	}
	return slices.Contains(partitions, int32(partition)) && offset < r.marks[markOf(topic, int32(partition))]
}
