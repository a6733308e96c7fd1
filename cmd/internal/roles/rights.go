package roles

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/internal/deliveries"
	"quittance/internal/intake"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/reconciliation/matcher"
	"quittance/schemas"
	"quittance/sinks/cashin"
	"quittance/sinks/erp"
	"quittance/sinks/notify"
	"quittance/sinks/webhook"
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

// KafkaClients returns all clients of Kafka with their rights. It is the one table of
// rights: `quittance acls`, deploy/kafka/acls.md and the check at start are made from it.
func KafkaClients() []KafkaClient {
	rights := clientRights()
	var out []KafkaClient
	for _, r := range Table() {
		out = append(out, KafkaClient{r.Name, r.Short, sorted(rights[r.Name])})
	}
	return append(out,
		KafkaClient{ClientMigrate, "`quittance migrate`, which creates and configures topics", sorted(rights[ClientMigrate])},
		KafkaClient{ClientOperator, "the other commands: doctor, sessions, cases, statements, replay, rebuild, erase, secrets", sorted(rights[ClientOperator])})
}

// clientRights returns the rights by client, unsorted.
func clientRights() map[string][]kafka.Right {
	commander := slices.Concat(write(schemas.TopicCommands), read(schemas.TopicReplies))
	planned := func(k deliveries.Registration) []kafka.Right { return read(k.Notifications, k.Deliveries) }
	var every, written []kafka.Right // of all kinds of deliveries
	var groups []string
	for _, k := range DeliveryKinds(nil) {
		every = append(every, planned(k)...)
		written = append(written, write(k.Deliveries)...)
		groups = append(groups, k.Planning().Group, k.Sending().Group)
	}
	deliver := func(name deliveries.Kind) []kafka.Right {
		k, _ := DeliveryKinds(nil).Of(name) // it is registered
		return slices.Concat(consumes(string(name)), write(k.Deliveries, schemas.TopicAttempts, schemas.TopicPoisonDeliveries))
	}
	f := schemas.Checkout
	own := map[string][]kafka.Right{
		string(KindIngress): slices.Concat(commander, read(schemas.TopicReferences), write(schemas.TopicReferences, schemas.TopicMessages)),
		f.Processor: slices.Concat(consumes(f.Processor), transact(f.Processor+"-"), read(f.State),
			write(f.State, f.Events, f.Replies, f.Poison, schemas.TopicCollections, schemas.TopicWebhooks, schemas.TopicPartners, schemas.TopicConfirmations)),
		"collect":            slices.Concat(consumes("collect"), write(schemas.TopicCommands, schemas.TopicReplies, schemas.TopicCalls, schemas.TopicPoisonCollections)),
		string(webhook.Kind): deliver(webhook.Kind),
		string(cashin.Kind):  deliver(cashin.Kind),
		string(notify.Kind):  slices.Concat(deliver(notify.Kind), write(schemas.TopicMessages)),
		string(erp.Kind):     slices.Concat(deliver(erp.Kind), commander),
		"schedule":           slices.Concat(consumes("schedule"), describeGroups(groups...), every, written, write(schemas.TopicPoisonDeliveries)),
		"cases":              slices.Concat(consumes("cases"), commander, write(schemas.TopicCases, schemas.TopicPoisonCases)),
		"readmodel":          slices.Concat(consumes("readmodel"), write(schemas.TopicPoisonReadmodel)),
		"journal":            slices.Concat(consumes("journal"), write(schemas.TopicPoisonJournal)),
		"match": slices.Concat(describeGroups("journal"), read(schemas.TopicCases, schemas.TopicStatements, schemas.TopicReconciliation, schemas.TopicPoisonJournal), write(schemas.TopicReconciliation),
			transact(matcher.TransactionalIDs)),
		ClientMigrate: topics(kmsg.ACLOperationCreate, allTopics()...),
		ClientOperator: slices.Concat(commander, describeGroups(groups...), every, read(f.Commands, f.State, schemas.TopicReferences, schemas.TopicAttempts, schemas.TopicCalls, schemas.TopicCases, schemas.TopicStatements, schemas.TopicReconciliation, schemas.TopicPoisonReadmodel, schemas.TopicPoisonJournal),
			write(schemas.TopicStatements), transact(intake.TransactionalIDs)),
	}
	own[ClientMigrate] = append(own[ClientMigrate], topics(kmsg.ACLOperationAlterConfigs, allTopics()...)...)
	for name := range own {
		own[name] = append(own[name], CommonRights()...)
	}
	return own
}

// CommonRights returns the rights of every client: at start it looks at the settings of all
// topics, at the replicas of the broker's own, and at the keys of events.
func CommonRights() []kafka.Right {
	return sorted(slices.Concat(
		topics(kmsg.ACLOperationDescribe, append(allTopics(), "__consumer_offsets", "__transaction_state")...),
		topics(kmsg.ACLOperationDescribeConfigs, allTopics()...),
		read(schemas.TopicEvents)))
}

func allTopics() []string {
	var names []string
	for _, t := range schemas.Topics() {
		names = append(names, t.Name)
	}
	return names
}

func topics(o kmsg.ACLOperation, names ...string) (out []kafka.Right) {
	for _, name := range names {
		out = append(out, kafka.Right{Resource: kafka.Resource{Type: kmsg.ACLResourceTypeTopic, Name: name}, Operation: o})
	}
	return out
}

func read(names ...string) []kafka.Right  { return topics(kmsg.ACLOperationRead, names...) }
func write(names ...string) []kafka.Right { return topics(kmsg.ACLOperationWrite, names...) }

func groupRights(o kmsg.ACLOperation, names []string) (out []kafka.Right) {
	for _, name := range names {
		out = append(out, kafka.Right{Resource: kafka.Resource{Type: kmsg.ACLResourceTypeGroup, Name: name}, Operation: o})
	}
	return out
}

// join are the rights of a member of groups.
func join(names ...string) []kafka.Right { return groupRights(kmsg.ACLOperationRead, names) }

// describeGroups are the rights of a reader of groups' offsets.
func describeGroups(names ...string) []kafka.Right {
	return groupRights(kmsg.ACLOperationDescribe, names)
}

// transact is the right to use the transactional ids with that beginning.
func transact(beginning string) []kafka.Right {
	return []kafka.Right{{Resource: kafka.Resource{Type: kmsg.ACLResourceTypeTransactionalId, Name: beginning, Prefixed: true}, Operation: kmsg.ACLOperationWrite}}
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
	i := slices.IndexFunc(KafkaClients(), func(c KafkaClient) bool { return c.Name == name })
	rights := KafkaClients()[i].Rights
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
