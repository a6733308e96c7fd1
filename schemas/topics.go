package schemas

import (
	"hash/fnv"
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
	// Together is the same for topics that have the same number of partitions, of
	// which partition n belongs to the same agencies; empty for the others.
	Together string
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

// Partition counts of a new installation. Commands, state and events of a family
// share one.
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

// Topics is the one table of topics: the family of each processor, and the topics
// of sinks.
func Topics() []Topic {
	effect := func(name, key, record string) Topic {
		return Topic{Name: name, Partitions: defaultEffectPartitions, Retention: defaultRetentionEffects, Key: key, Records: []string{record}}
	}
	return append(Checkout.Topics(FamilyRecords{
		Commands: []string{"quittance.Command"},
		State:    []string{"quittance.Session", "quittance.Order", "quittance.Idempotency", "quittance.Quota", "quittance.Token"},
		Events:   []string{"quittance.Event"},
		Replies:  []string{"quittance.Reply"},
	}),
		effect(TopicCollections, "collection_id", "quittance.CollectionRequest"),
		effect(TopicWebhooks, "application_id", "quittance.Notification"),
		effect(TopicConfirmations, "tenant_id", "quittance.Notification"),
		effect(TopicWebhooksDeliveries, "endpoint id", "quittance.Delivery"),
		effect(TopicERPDeliveries, "agency and mode", "quittance.Delivery"),
		effect(TopicAttempts, "endpoint id, or agency and mode", "quittance.Attempt"),
		poison(TopicPoisonCollections),
		poison(TopicPoisonReadmodel),
		poison(TopicPoisonJournal),
		poison(TopicPoisonDeliveries),
	)
}

// PartitionOf is the partition of n that a key's records live in. It never
// changes for an n. Commands, state and events are partitioned by the agency's id.
func PartitionOf(key string, n int32) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))         // never fails
	return int32(h.Sum32() % uint32(n)) //nolint:gosec // n is a partition count, the result below it
}
