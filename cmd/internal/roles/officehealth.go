package roles

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/ingress/oversight"
	"quittance/internal/build"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/disbursements"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/notify"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/internal/sessions"
	"quittance/schemas"
	sinkjournal "quittance/sinks/journal"
)

const (
	// offsetsWithin bounds the questions to Kafka for which the page of health waits.
	offsetsWithin = 3 * time.Second
	// offsetsFor is how long the answers count: several people may look at the page.
	offsetsFor = 10 * time.Second
)

// officeHealth reads from Kafka how far consumer groups and read models are behind. Safe for concurrent use.
type officeHealth struct {
	kafka   kafka.Config
	log     *slog.Logger
	journal *lateJournal
	models  []storedModel

	mu   sync.Mutex
	adm  *kadm.Client
	at   time.Time // of the answers; zero: none
	lag  []oversight.Lag
	ends map[string]map[int32]kafka.Span // by topic, without the prefix
	err  error
}

// storedModel is a read model in Postgres.
type storedModel struct {
	name, topic string
	positions   func(ctx context.Context, topic string) (map[int32]int64, error)
}

// health returns what the page of health reads, and what reads offsets.
func (b *Base) health(sent *deliveries.Store, known *cases.Store, late *lateJournal) (oversight.Health, *officeHealth) {
	batches := disbursements.NewStore(b.Pool, b.Codec)
	h := &officeHealth{kafka: b.KafkaConfig(), log: b.Log, journal: late, models: []storedModel{
		{"readmodel", schemas.TopicEvents, sessions.NewStore(b.Pool).Positions},
		{"cases", schemas.TopicCases, known.Positions},
		{"deliveries", schemas.TopicAttempts, sent.Positions},
		{"batches", schemas.Disbursement.Events, batches.Positions},
	}}
	b.close = append(b.close, h.close)
	return oversight.Health{
		Operators: digests.NewStore(b.Pool), Batches: batches, Deliveries: sent, Messages: notify.NewReports(b.Pool), Cases: known, Lag: h.lags, Models: h.positions, RegistryAge: b.Registry.Age, Stuck: b.unhealthy,
		Directory: func(ctx context.Context) (registry.Directory, error) {
			return registry.ReadDirectory(ctx, b.Pool, b.SimulatorURL, b.Now())
		},
	}, h
}

// reportDesk makes reports for pages. Their positions are compared with Kafka, unless it is away.
func (b *Base) reportDesk(late *lateJournal, offsets *officeHealth) *report.Desk {
	return &report.Desk{
		Open: late.connection, Committed: offsets.journalOffsets, Program: b.Program, Version: build.Read().Version(), Now: func() time.Time { return time.Now().UTC() },
	}
}

// journalOffsets returns the offsets that the sink journal has committed.
func (h *officeHealth) journalOffsets(ctx context.Context) (kadm.OffsetResponses, error) {
	h.mu.Lock()
	err := h.open()
	adm := h.adm
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, offsetsWithin)
	defer cancel()
	return kafka.Committed(ctx, adm, h.kafka.Prefix+sinkjournal.Group)
}

// open makes the client. The caller holds mu.
func (h *officeHealth) open() error {
	if h.adm != nil {
		return nil
	}
	cl, err := h.kafka.Client()
	if err == nil {
		h.adm = kadm.NewClient(cl)
	}
	return err
}

// groupsOf returns the groups of roles, each once, with all topics that its members read.
func groupsOf(table []Role) (out []Group) {
	for _, r := range table {
		for _, g := range r.Groups {
			i := slices.IndexFunc(out, func(known Group) bool { return known.Name == g.Name })
			if i < 0 {
				out = append(out, Group{g.Name, slices.Clone(g.Topics)})
				continue
			}
			for _, t := range g.Topics {
				if !slices.Contains(out[i].Topics, t) {
					out[i].Topics = append(out[i].Topics, t)
				}
			}
		}
	}
	return out
}

// lags returns how far all consumer groups are behind.
func (h *officeHealth) lags(ctx context.Context) ([]oversight.Lag, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read(ctx)
	return h.lag, h.err
}

// read asks Kafka, unless it was asked a moment ago. The caller holds mu.
func (h *officeHealth) read(ctx context.Context) {
	if !h.at.IsZero() && time.Since(h.at) < offsetsFor {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), offsetsWithin)
	defer cancel()
	h.lag, h.ends, h.err = nil, nil, nil
	if h.err = h.open(); h.err == nil {
		h.err = h.ask(ctx)
	}
	h.at = time.Now()
}

func (h *officeHealth) ask(ctx context.Context) error {
	prefix := h.kafka.Prefix
	var list []oversight.Lag
	for _, g := range groupsOf(Table()) {
		topics := make([]string, len(g.Topics))
		for i, t := range g.Topics {
			topics[i] = prefix + t
		}
		lag, err := kafka.Lag(ctx, h.adm, prefix+g.Name, topics...)
		if err != nil {
			return err
		}
		committed, err := kafka.Committed(ctx, h.adm, prefix+g.Name)
		if err != nil {
			return err
		}
		for i, t := range g.Topics {
			_, reads := committed[topics[i]]
			list = append(list, oversight.Lag{Group: g.Name, Topic: t, Records: lag[topics[i]], Never: !reads})
		}
	}
	ends := map[string]map[int32]kafka.Span{}
	for _, topic := range h.topics() {
		spans, err := kafka.Bounds(ctx, h.adm, prefix+topic)
		if err != nil {
			return err
		}
		ends[topic] = spans
	}
	h.lag, h.ends = list, ends
	return nil
}

// topics are those of the read models, also of the journal, each once.
func (h *officeHealth) topics() []string {
	out := slices.Clone(journal.Topics())
	for _, m := range h.models {
		out = append(out, m.topic)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// positions returns how far the read models are. What is away is not known.
func (h *officeHealth) positions(ctx context.Context) []oversight.Model {
	h.mu.Lock()
	h.read(ctx)
	ends := h.ends
	h.mu.Unlock()
	out := make([]oversight.Model, 0, len(h.models)+1)
	for _, m := range h.models {
		stored, err := m.positions(ctx, h.kafka.Prefix+m.topic)
		if err != nil {
			h.log.LogAttrs(ctx, slog.LevelWarn, "reading the positions of a read model", slog.String("model", m.name), slog.Any("error", err))
			out = append(out, oversight.Model{Name: m.name, Topic: m.topic})
			continue
		}
		out = append(out, modelAt(m.name, m.topic, stored, ends[m.topic]))
	}
	return append(out, h.journalPositions(ctx, ends)...)
}

// modelAt returns a read model whose positions are known; ends are nil while Kafka is away.
func modelAt(name, topic string, stored map[int32]int64, ends map[int32]kafka.Span) oversight.Model {
	m := oversight.Model{Name: name, Topic: topic, PositionKnown: true, BehindKnown: ends != nil}
	for _, p := range stored {
		m.Position += max(p, 0) // what is not begun is below zero
	}
	for p, span := range ends {
		m.Behind += max(0, span.To-max(span.From, stored[p]))
	}
	return m
}

// journalPositions returns how far ClickHouse is, by topic; ends are nil while Kafka is away. It is not known while ClickHouse is away.
func (h *officeHealth) journalPositions(ctx context.Context, ends map[string]map[int32]kafka.Span) []oversight.Model {
	const name = "journal"
	store, err := h.journal.store(ctx)
	if err != nil {
		return []oversight.Model{{Name: name}}
	}
	ctx, cancel := context.WithTimeout(ctx, journalWithin)
	defer cancel()
	list, err := store.Positions(ctx)
	if err != nil {
		h.log.LogAttrs(ctx, slog.LevelWarn, "reading the positions of the journal", slog.Any("error", err))
		return []oversight.Model{{Name: name}}
	}
	stored := map[string]map[int32]int64{}
	var topics []string
	for _, p := range list {
		if stored[p.Topic] == nil {
			stored[p.Topic] = map[int32]int64{}
			topics = append(topics, p.Topic)
		}
		stored[p.Topic][p.Partition] = p.Position
	}
	out := make([]oversight.Model, len(topics))
	for i, t := range topics {
		out[i] = modelAt(name, t, stored[t], ends[strings.TrimPrefix(t, h.kafka.Prefix)])
	}
	return out
}

func (h *officeHealth) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.adm != nil {
		h.adm.Close()
	}
}
