package roles

import (
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/sinks/cashin"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	"quittance/sinks/notify"
	"quittance/sinks/webhook"
)

// DeliveryKinds returns the kinds of deliveries. reg may be nil for operations that need
// no destinations.
func DeliveryKinds(reg *registry.Registry) deliveries.Kinds {
	if reg == nil { // as a value of an interface it would be no nil
		return deliveries.Kinds{webhook.Registration(nil), cashin.Registration(nil), erp.Registration(nil), notify.Registration()}
	}
	return deliveries.Kinds{webhook.Registration(reg), cashin.Registration(reg), erp.Registration(reg), notify.Registration()}
}

// deliveryTopics returns the topics of the notifications and of the deliveries of all kinds, and the groups that read them.
func deliveryTopics() (notifications, sent, groups []string) {
	for _, k := range DeliveryKinds(nil) {
		notifications, sent = append(notifications, k.Planned()...), append(sent, k.Deliveries)
		groups = append(groups, k.Planning().Group, k.Sending().Group)
	}
	return notifications, sent, groups
}

// deliveryRole returns the role of a kind of deliveries, which has what r has, and what its planner and its worker need.
func deliveryRole(kind deliveries.Kind, r Role) Role {
	k, _ := DeliveryKinds(nil).Of(kind) // it is registered
	r.Kind, r.Name, r.Needs = KindSink, string(kind), append([]Need{NeedPostgres, NeedMasterKeys, NeedRegistry}, r.Needs...)
	r.Groups = append([]Group{{k.Planning().Group, k.Planned()}, {k.Sending().Group, []string{k.Sending().Topic}}}, r.Groups...)
	r.Writes = append(r.Writes, k.Deliveries, schemas.TopicAttempts, schemas.TopicPoisonDeliveries)
	r.Rows = rows(registryRead, deliveriesRead, r.Rows)
	r.Keys = append(r.Keys, macs(secret.LabelOutcomes(r.Name))...)
	return r
}

// deliver runs the planner and the worker of a kind of deliveries.
func (b *Base) deliver(name deliveries.Kind, policy delivery.Policy) error {
	kinds := DeliveryKinds(b.Registry)
	kind, err := kinds.Of(name)
	if err != nil {
		return err
	}
	cl, err := b.KafkaConfig().Client()
	if err != nil {
		return err
	}
	b.close = append(b.close, cl.Close)
	var bodies origin.MACs
	if kind.Proves() {
		if bodies, err = b.Keys.MACs(secret.LabelWebhookBodies); err != nil {
			return err
		}
	}
	outcomes, err := b.signsOutcomes(name)
	if err != nil {
		return err
	}
	err = add(b, string(name)+" planner", delivery.NewPlanner, delivery.PlannerConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Bodies: bodies, Outcomes: outcomes, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	return add(b, string(name)+" worker", delivery.NewWorker, delivery.WorkerConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Bodies: bodies, AcceptUnproven: b.AcceptUnprovenBodies, Outcomes: outcomes, Policy: policy, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		History: deliveries.NewHistory(b.KafkaConfig(), cl, deliveries.NewStore(b.Pool, kinds)),
	})
}

// signsOutcomes returns what signs the outcomes of a kind.
func (b *Base) signsOutcomes(name deliveries.Kind) (*origin.Signer, error) {
	macs, err := b.Keys.MACs(secret.LabelOutcomes(string(name)))
	if err != nil {
		return nil, err
	}
	return origin.NewSigner(string(name), macs), nil
}

// Outcomes returns whom the keys' holder believes about deliveries: the workers of the kinds. acceptUnproven also
// believes records of a release whose workers proved nothing.
func Outcomes(keys *secret.Keys, acceptUnproven bool, kinds ...deliveries.Kind) (origin.Outcomes, error) {
	out := origin.Outcomes{Workers: origin.Verifier{}, AcceptUnproven: acceptUnproven}
	for _, kind := range kinds {
		macs, err := keys.MACs(secret.LabelOutcomes(string(kind)))
		if err != nil {
			return out, err
		}
		out.Workers[string(kind)] = macs
	}
	return out, nil
}

// AllOutcomes is Outcomes for all kinds.
func AllOutcomes(keys *secret.Keys, acceptUnproven bool) (origin.Outcomes, error) {
	return Outcomes(keys, acceptUnproven, deliveryKinds()...)
}

// outcomeKeys are the keys of those who believe outcomes of all kinds.
func outcomeKeys() (out []secret.Use) {
	for _, kind := range deliveryKinds() {
		out = append(out, macs(secret.LabelOutcomes(string(kind)))...)
	}
	return out
}

// deliveryKinds returns the names of the kinds of deliveries.
func deliveryKinds() (names []deliveries.Kind) {
	for _, k := range DeliveryKinds(nil) {
		names = append(names, k.Kind)
	}
	return names
}
