package schemas

import (
	"hash/fnv"
	"strconv"
	"time"
)

// Names of the topics. A prefix (kafka.Config.Prefix) sets installations that
// share a broker apart.
const (
	TopicCommands           = "checkout.commands"
	TopicState              = "checkout.state"
	TopicEvents             = "checkout.events"
	TopicReplies            = "checkout.replies"
	TopicCollections        = "collections.requests"
	TopicWebhooks           = "webhooks"
	TopicWebhooksDeliveries = "webhooks.deliveries"
	TopicConfirmations      = "erp.confirmations"
	TopicERPDeliveries      = "erp.deliveries"
	TopicAttempts           = "deliveries.attempts"
	TopicPoisonCommands     = "checkout.commands.poison"
	TopicPoisonCollections  = "collections.requests.poison"
	TopicPoisonReadmodel    = "readmodel.poison"
	TopicPoisonJournal      = "journal.poison"
	TopicPoisonDeliveries   = "deliveries.poison"
)

// Topic says how a topic is made.
type Topic struct {
	// Name without the installation's prefix.
	Name string
	// Partitions is fixed when the topic is first created.
	Partitions int32
	// Compacted topics keep the last value of a key; the others delete by age.
	Compacted bool
	// Retention is how long records stay; zero keeps them for ever.
	Retention time.Duration
	// Key says what records are keyed by, for the reader of the table.
	Key string
	// Records are the full Avro names of what stands in it; none for poison
	// topics, which keep bytes that could not be decoded as they were.
	Records []string
	// Config is what else the broker is told.
	Config map[string]string
}

// Partition counts of a new installation. Commands, state and events share one:
// partition n of each belongs to the same agencies.
const (
	DefaultPartitions        = 8
	defaultReplyPartitions   = 4
	defaultEffectPartitions  = 8
	defaultPoisonPartitions  = 1
	day                      = 24 * time.Hour
	defaultRetentionEffects  = 7 * day
	defaultRetentionPoison   = 90 * day
	defaultRetentionCommands = 30 * day
)

// Topics is the one table of topics.
func Topics() []Topic {
	poison := func(name string) Topic {
		return Topic{Name: name, Partitions: defaultPoisonPartitions, Retention: defaultRetentionPoison, Key: "as it was"}
	}
	effect := func(name, key, record string) Topic {
		return Topic{Name: name, Partitions: defaultEffectPartitions, Retention: defaultRetentionEffects, Key: key, Records: []string{record}}
	}
	return []Topic{
		{Name: TopicCommands, Partitions: DefaultPartitions, Retention: defaultRetentionCommands, Key: "tenant_id", Records: []string{"quittance.Command"}},
		{
			Name: TopicState, Partitions: DefaultPartitions, Compacted: true, Key: "entry",
			Records: []string{"quittance.Session", "quittance.Order", "quittance.Idempotency", "quittance.Quota", "quittance.Token"},
			Config:  map[string]string{"segment.ms": strconv.FormatInt((10 * time.Minute).Milliseconds(), 10), "min.cleanable.dirty.ratio": "0.1"},
		},
		{Name: TopicEvents, Partitions: DefaultPartitions, Key: "tenant_id", Records: []string{"quittance.Event"}},
		{Name: TopicReplies, Partitions: defaultReplyPartitions, Retention: time.Hour, Key: "correlation_id", Records: []string{"quittance.Reply"}},
		effect(TopicCollections, "collection_id", "quittance.CollectionRequest"),
		effect(TopicWebhooks, "application_id", "quittance.Notification"),
		effect(TopicConfirmations, "tenant_id", "quittance.Notification"),
		effect(TopicWebhooksDeliveries, "endpoint id", "quittance.Delivery"),
		effect(TopicERPDeliveries, "agency and mode", "quittance.Delivery"),
		effect(TopicAttempts, "endpoint id, or agency and mode", "quittance.Attempt"),
		poison(TopicPoisonCommands),
		poison(TopicPoisonCollections),
		poison(TopicPoisonReadmodel),
		poison(TopicPoisonJournal),
		poison(TopicPoisonDeliveries),
	}
}

// PartitionOf is the partition of n that a key's records live in. It never
// changes for an n. Commands, state and events are partitioned by the agency's id.
func PartitionOf(key string, n int32) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))         // never fails
	return int32(h.Sum32() % uint32(n)) //nolint:gosec // n is a partition count, the result below it
}
