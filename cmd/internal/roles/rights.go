package roles

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/internal/intake"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	sinkjournal "quittance/sinks/journal"
)

// KafkaClient is a client of Kafka that has rights of its own: a role, or commands.
type KafkaClient struct {
	Name, Short string
	// Rights are the least that it needs.
	Rights []kafka.Right
}

// Names of the clients of Kafka that are no roles.
const (
	ClientMigrate  = "migrate"
	ClientOperator = "operator"
)

// Group is a consumer group, and the topics that its members read.
type Group struct {
	Name   string
	Topics []string
}

// Access is what a client of Kafka needs there. Names have no prefix.
type Access struct {
	// Groups are the consumer groups that it joins.
	Groups []Group
	// Reads are the topics that it reads without a group, Writes those that it writes.
	Reads, Writes []string
	// Describes are the groups whose offsets it reads.
	Describes []string
	// Transacts is the beginning of its transactional ids; empty for a client without transactions.
	Transacts string
}

// rights returns the least rights for the access, and those of every client.
func (a Access) rights() []kafka.Right {
	out := slices.Concat(CommonRights(), topics(kmsg.ACLOperationRead, a.Reads...), topics(kmsg.ACLOperationWrite, a.Writes...),
		groups(kmsg.ACLOperationDescribe, a.Describes...))
	for _, g := range a.Groups {
		out = slices.Concat(out, groups(kmsg.ACLOperationRead, g.Name), topics(kmsg.ACLOperationRead, g.Topics...))
	}
	if a.Transacts != "" {
		ids := kafka.Resource{Type: kmsg.ACLResourceTypeTransactionalId, Name: a.Transacts, Prefixed: true}
		out = append(out, kafka.Right{Resource: ids, Operation: kmsg.ACLOperationWrite})
	}
	return sorted(out)
}

// KafkaClients returns all clients of Kafka with their rights. It is the one table of
// rights: `quittance acls`, deploy/kafka/acls.md and the check at start are made from it.
func KafkaClients() []KafkaClient {
	var out []KafkaClient
	for _, r := range Table() {
		out = append(out, KafkaClient{r.Name, r.Short, r.rights()})
	}
	migrate := slices.Concat(CommonRights(),
		topics(kmsg.ACLOperationCreate, allTopics()...), topics(kmsg.ACLOperationAlterConfigs, allTopics()...))
	return append(out,
		KafkaClient{ClientMigrate, "`quittance migrate`, which creates and configures topics", sorted(migrate)},
		KafkaClient{ClientOperator, "the other commands: doctor, sessions, cases, statements, replay, rebuild, erase, secrets", operatorAccess().rights()})
}

// operatorAccess is what the commands of operators need. They read what processors and sinks of deliveries read.
func operatorAccess() Access {
	notifications, sent, groups := deliveryTopics()
	reads := slices.Concat(notifications, sent, []string{
		schemas.TopicReplies, schemas.Disbursement.Replies, schemas.TopicReferences, schemas.TopicAttempts, schemas.TopicCalls, schemas.TopicCases,
		schemas.TopicStatements, schemas.TopicReconciliation, schemas.TopicAudit,
		schemas.TopicPoisonReadmodel, schemas.TopicPoisonJournal,
	})
	for _, p := range OfKind(KindProcessor) {
		reads = append(reads, p.Reads...)
		for _, g := range p.Groups {
			reads = append(reads, g.Topics...)
		}
	}
	return Access{
		Reads: reads, Writes: []string{schemas.Checkout.Commands, schemas.Disbursement.Commands, schemas.TopicStatements},
		Describes: slices.Concat(groups, []string{sinkjournal.Group}), Transacts: intake.TransactionalIDs,
	}.asksERPs()
}

// CommonRights returns the rights of every client: at start it looks at the settings of all
// topics, at the replicas of the broker's own, and at the keys of events.
func CommonRights() []kafka.Right {
	return sorted(slices.Concat(
		topics(kmsg.ACLOperationDescribe, append(allTopics(), "__consumer_offsets", "__transaction_state")...),
		topics(kmsg.ACLOperationDescribeConfigs, allTopics()...),
		topics(kmsg.ACLOperationRead, schemas.TopicEvents)))
}

func allTopics() []string {
	var names []string
	for _, t := range schemas.Topics() {
		names = append(names, t.Name)
	}
	return names
}

// allow returns the rights to an operation on resources of a type.
func allow(o kmsg.ACLOperation, of kmsg.ACLResourceType, names ...string) (out []kafka.Right) {
	for _, name := range names {
		out = append(out, kafka.Right{Resource: kafka.Resource{Type: of, Name: name}, Operation: o})
	}
	return out
}

func topics(o kmsg.ACLOperation, names ...string) []kafka.Right {
	return allow(o, kmsg.ACLResourceTypeTopic, names...)
}

func groups(o kmsg.ACLOperation, names ...string) []kafka.Right {
	return allow(o, kmsg.ACLResourceTypeGroup, names...)
}

// sorted sorts rights and leaves out repeated ones.
func sorted(rights []kafka.Right) []kafka.Right {
	slices.SortFunc(rights, func(a, b kafka.Right) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), cmp.Compare(a.Operation, b.Operation))
	})
	return slices.Compact(rights)
}

// CheckRights asks the broker whether this process has the rights of a client. The error
// names the principal, the operation and the resource of each right that is missing.
func (s *Settings) CheckRights(ctx context.Context, name string) error {
	clients := KafkaClients()
	rights := clients[slices.IndexFunc(clients, func(c KafkaClient) bool { return c.Name == name })].Rights
	for i := range rights {
		if r := &rights[i]; r.Prefixed {
			r.Name, r.Prefixed = r.Name+s.Instance+s.Nonce, false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, rightsPatience)
	defer cancel()
	for {
		err := kafka.CheckRights(ctx, s.KafkaConfig(), rights)
		if err == nil || errors.Is(err, kafka.ErrRights) || !consume.Sleep(ctx, time.Second) {
			return err
		}
	}
}

// rightsPatience is how long brokers may take to tell the rights, for example while they
// elect coordinators.
const rightsPatience = 30 * time.Second

// checkRights refuses to start a role without its rights. Developers' brokers have no rights.
func (b *Base) checkRights(r Role) error {
	if b.Developer() && b.KafkaConfig().Security.Anonymous() {
		return nil
	}
	return b.Settings.CheckRights(b.ctx, r.Name)
}
