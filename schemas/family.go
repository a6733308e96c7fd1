package schemas

import (
	"strconv"
	"time"
)

// Family holds the names of the topics of one processor. Partition n of its commands,
// state and events belongs to the same agencies, so all three have the same number of
// partitions.
type Family struct {
	// Processor is the name of the processor.
	Processor                                string
	Commands, State, Events, Replies, Poison string
}

// FamilyOf returns the family of the processor with that name.
func FamilyOf(processor string) Family {
	return Family{
		Processor: processor, Commands: processor + ".commands", State: processor + ".state", Events: processor + ".events",
		Replies: processor + ".replies", Poison: processor + ".commands.poison",
	}
}

// Checkout is the family of the processor of checkout sessions.
var Checkout = FamilyOf("checkout")

// Disbursement is the family of the processor of disbursement batches.
var Disbursement = FamilyOf("disbursement")

// ERPQueries are the topics of questions to the agencies' ERPs, which the sink erp answers. It keeps nothing: there
// are no state, events and poison.
var ERPQueries = Family{Processor: "erp", Commands: TopicERPQueries, Replies: TopicERPAnswers}

// FamilyRecords holds the full Avro names of the records in a family's topics.
type FamilyRecords struct{ Commands, State, Events, Replies []string }

// Topics returns the rows of the family in the table of topics.
func (f Family) Topics(holds FamilyRecords) []Topic {
	return []Topic{
		{Name: f.Commands, Partitions: DefaultPartitions, Together: f.Processor, Retention: defaultRetentionCommands, Key: "tenant_id", Records: holds.Commands},
		{
			Name: f.State, Partitions: DefaultPartitions, Together: f.Processor, Compacted: true, Key: "entry", Records: holds.State,
			Config: map[string]string{
				"segment.ms": milliseconds(10 * time.Minute), "min.cleanable.dirty.ratio": "0.1",
				// Replaced values, and with them the contact data of archived sessions, are gone
				// after this time even from a partition with few writes (docs/design/decisions.md § 15).
				"max.compaction.lag.ms": milliseconds(7 * day),
			},
		},
		{Name: f.Events, Partitions: DefaultPartitions, Together: f.Processor, Key: "tenant_id", Records: holds.Events},
		{Name: f.Replies, Partitions: defaultReplyPartitions, Retention: time.Hour, Key: "correlation_id", Records: holds.Replies},
		poison(f.Poison),
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func poison(name string) Topic {
	return Topic{Name: name, Partitions: defaultPoisonPartitions, Retention: defaultRetentionPoison, Key: "unchanged"}
}
