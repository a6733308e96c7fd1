package schemas

import (
	"hash/fnv"
	"strconv"
	"time"
)

// Names of the topics, without the prefix of the installation (kafka.Config.Prefix).
const (
	TopicCommands           = "checkout.commands"
	TopicState              = "checkout.state"
	TopicEvents             = "checkout.events"
	TopicReplies            = "checkout.replies"
	TopicCollections        = "collections.requests"
	TopicCalls              = "collections.calls"
	TopicPayouts            = "disbursements.requests"
	TopicPayoutCalls        = "disbursements.calls"
	TopicWebhooks           = "webhooks"
	TopicWebhooksDeliveries = "webhooks.deliveries"
	TopicConfirmations      = "erp.confirmations"
	TopicERPDeliveries      = "erp.deliveries"
	TopicERPQueries         = "erp.queries"
	TopicERPAnswers         = "erp.answers"
	TopicPartners           = "cashin.webhooks"
	TopicPartnersDeliveries = "cashin.deliveries"
	TopicMessages           = "notifications"
	TopicMessagesDeliveries = "notifications.deliveries"
	TopicAttempts           = "deliveries.attempts"
	TopicReferences         = "references"
	TopicCases              = "cases.events"
	TopicStatements         = "reconciliation.statements"
	TopicReconciliation     = "reconciliation.events"
	TopicAudit              = "audit"
	TopicPoisonCommands     = "checkout.commands.poison"
	TopicPoisonCollections  = "collections.requests.poison"
	TopicPoisonPayouts      = "disbursements.requests.poison"
	TopicPoisonBatches      = "disbursement.events.poison"
	TopicPoisonReadmodel    = "readmodel.poison"
	TopicPoisonJournal      = "journal.poison"
	TopicPoisonDeliveries   = "deliveries.poison"
	TopicPoisonCases        = "cases.poison"
)

// Topic describes a topic.
type Topic struct {
	// Name without the installation's prefix.
	Name string
	// Partitions is the number of partitions. It is fixed when the topic is created.
	Partitions int32
	// Together names a group of topics with the same number of partitions: partition n of
	// each belongs to the same agencies. Empty for other topics.
	Together string
	// Compacted topics keep the last value of each key. Other topics delete by age.
	Compacted bool
	// Retention is how long records stay; zero keeps them for ever. No topic deletes records
	// because of its size.
	Retention time.Duration
	// Key describes the key of the records, for documentation.
	Key string
	// Records holds the full Avro names of the records. Poison topics have none: their
	// values are the unchanged values of other topics.
	Records []string
	// Config holds further settings of the broker for this topic.
	Config map[string]string
}

// Numbers of partitions and retention times of a new installation. Commands, state and
// events of a family have the same number of partitions.
const (
	DefaultPartitions        = 8
	defaultReplyPartitions   = 4
	defaultEffectPartitions  = 8
	defaultPoisonPartitions  = 1
	day                      = 24 * time.Hour
	defaultRetentionEffects  = 7 * day
	defaultRetentionHistory  = 90 * day
	defaultRetentionPoison   = 90 * day
	defaultRetentionCommands = 30 * day
)

// Replicas and InSyncReplicas are what each topic needs, so that the loss of one disk loses
// no payment: the number of its replicas, and how many of them must have a record before it
// is acknowledged. They are the same for all topics, because one transaction of a processor
// writes several of them.
const (
	Replicas       = 3
	InSyncReplicas = 2
)

// MaxERPAnswer is the size of the largest record in erp.answers, in bytes. An ERP's answer of 1 MiB, sealed and encoded,
// is smaller.
const MaxERPAnswer = 2 << 20

// Topics returns the table of all topics: the family of each processor, and the topics of
// sinks.
func Topics() []Topic {
	effect := func(name string, retention time.Duration, key, record string) Topic {
		return Topic{Name: name, Partitions: defaultEffectPartitions, Retention: retention, Key: key, Records: []string{record}}
	}
	statements := effect(TopicStatements, 0, "agency, mode and account", "quittance.Statement")
	statements.Records = append(statements.Records, "quittance.StatementLine")
	reconciliation := effect(TopicReconciliation, 0, "agency, mode and account", "quittance.Finding")
	reconciliation.Records = append(reconciliation.Records, "quittance.DayTotal", "quittance.MatchRun", "quittance.Close")
	disbursements := Disbursement.Topics(FamilyRecords{
		Commands: []string{"quittance.DisbursementCommand"},
		State: []string{
			"quittance.Batch", "quittance.BatchSealing", "quittance.BatchLine", "quittance.BatchLineRef", "quittance.QueuedLine", "quittance.PayoutAccount",
			"quittance.BatchAgency", "quittance.BatchRoster", "quittance.BatchRevision",
		},
		Events:  []string{"quittance.DisbursementEvent"},
		Replies: []string{"quittance.DisbursementReply"},
	})
	// The broker's times, which no sender chooses: what settles for a day and what counts on a day depend on them.
	disbursements[0].Config = map[string]string{"message.timestamp.type": "LogAppendTime"}
	families := append(Checkout.Topics(FamilyRecords{
		Commands: []string{"quittance.Command"},
		State: []string{
			"quittance.Session", "quittance.Order", "quittance.Idempotency", "quittance.Quota", "quittance.Token", "quittance.TokenList", "quittance.Till",
			"quittance.MonthCounter", "quittance.NumberedPayment", "quittance.ExternalNumber", "quittance.Claim", "quittance.RefusingERP",
		},
		Events:  []string{"quittance.Event"},
		Replies: []string{"quittance.Reply"},
	}), disbursements...)
	return append(families,
		effect(TopicPayouts, defaultRetentionEffects, "payout_ref", "quittance.PayoutRequest"),
		effect(TopicPayoutCalls, defaultRetentionHistory, "payout_ref", "quittance.PayoutCall"),
		effect(TopicCollections, defaultRetentionEffects, "collection_id", "quittance.CollectionRequest"),
		effect(TopicCalls, defaultRetentionHistory, "collection_id", "quittance.Call"),
		effect(TopicWebhooks, defaultRetentionHistory, "application_id", "quittance.Notification"),
		effect(TopicConfirmations, 0, "tenant_id", "quittance.Notification"),
		Topic{Name: TopicERPQueries, Partitions: defaultEffectPartitions, Retention: time.Hour, Key: "tenant_id", Records: []string{"quittance.ERPQuery"}},
		Topic{
			Name: TopicERPAnswers, Partitions: defaultReplyPartitions, Retention: time.Hour, Key: "correlation_id", Records: []string{"quittance.ERPAnswer"},
			Config: map[string]string{"max.message.bytes": strconv.Itoa(MaxERPAnswer)},
		},
		effect(TopicWebhooksDeliveries, defaultRetentionEffects, "endpoint id", "quittance.Delivery"),
		effect(TopicERPDeliveries, defaultRetentionEffects, "agency and mode", "quittance.Delivery"),
		effect(TopicPartners, defaultRetentionHistory, "application_id", "quittance.Notification"),
		effect(TopicPartnersDeliveries, defaultRetentionEffects, "application_id", "quittance.Delivery"),
		effect(TopicMessages, defaultRetentionEffects, "hash of channel and address", "quittance.Message"),
		effect(TopicMessagesDeliveries, defaultRetentionEffects, "hash of channel and address", "quittance.Delivery"),
		effect(TopicAttempts, defaultRetentionHistory, "id of the destination", "quittance.Attempt"),
		Topic{Name: TopicReferences, Partitions: 1, Compacted: true, Key: "counter", Records: []string{"quittance.ReferenceBlock"}},
		// One partition: people make these events, and so the order is total.
		Topic{Name: TopicCases, Partitions: 1, Key: "case_id", Records: []string{"quittance.Event"}},
		statements,
		reconciliation,
		// One partition: the rows are numbered in the order of their records.
		Topic{Name: TopicAudit, Partitions: 1, Key: "sequence", Records: []string{"quittance.AuditRow"}},
		poison(TopicPoisonCollections),
		poison(TopicPoisonPayouts),
		poison(TopicPoisonBatches),
		poison(TopicPoisonReadmodel),
		poison(TopicPoisonJournal),
		poison(TopicPoisonDeliveries),
		poison(TopicPoisonCases),
	)
}

// PartitionOf returns the partition of the records with that key in a topic with n
// partitions. The result must never change: the agency's id determines the partition of
// commands, state and events.
func PartitionOf(key string, n int32) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))         // never fails
	return int32(h.Sum32() % uint32(n)) //nolint:gosec // n is a partition count, the result below it
}
