// Package kafka knows the broker: how clients are made, which topics an
// installation has and how many partitions each.
package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
)

// Config says which broker, and which installation on it.
type Config struct {
	// Brokers are host:port addresses to start from.
	Brokers []string
	// Prefix sets the topics and groups of installations that share a broker
	// apart. Empty in production.
	Prefix string
	// Replication of new topics; 0 takes the broker's default.
	Replication int16
	// Partitions of new topics that belong together by agency; 0 takes
	// schemas.DefaultPartitions.
	Partitions int32
	// Topics of the installation; schemas.Topics when nil. Tests add the family of a
	// processor of their own.
	Topics []schemas.Topic
}

// errFixed are topics that waiting does not mend.
var errFixed = errors.New("partition counts do not go together")

// ErrTopics says that the broker's topics are not what this version needs.
var ErrTopics = errors.New("topics are not ready")

// Client makes a client with what every client of ours has in common.
func (c Config) Client(opts ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID("quittance"),
		kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration { return min(time.Duration(tries)*50*time.Millisecond, time.Second) }),
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return cl, nil
}

// Producer makes a client that writes outside transactions: idempotent, acks from
// all replicas, no linger, partitions chosen by the caller.
func (c Config) Producer(opts ...kgo.Opt) (*kgo.Client, error) {
	return c.Client(append([]kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(30 * time.Second),
	}, opts...)...)
}

// Topology is an installation's topics as the broker has them.
type Topology struct {
	prefix     string
	partitions map[string]int32
}

// Name is a topic's name on the broker.
func (t *Topology) Name(topic string) string { return t.prefix + topic }

// Count is a topic's number of partitions.
func (t *Topology) Count(topic string) int32 { return t.partitions[topic] }

// Partition is where a topic's records with the key live.
func (t *Topology) Partition(topic, key string) int32 {
	return schemas.PartitionOf(key, t.partitions[topic])
}

// topics are those of the installation.
func (c Config) topics() []schemas.Topic {
	if c.Topics != nil {
		return c.Topics
	}
	return schemas.Topics()
}

// Load reads the installation's topics and refuses a broker that lacks one or has
// other partition counts than go together; the error wraps ErrTopics and names
// the mend.
func Load(ctx context.Context, c Config, cl *kgo.Client) (*Topology, error) {
	found, err := list(ctx, c, cl)
	if err != nil {
		return nil, err
	}
	var missing []string
	t := &Topology{prefix: c.Prefix, partitions: map[string]int32{}}
	for _, topic := range c.topics() {
		n, ok := found[c.Prefix+topic.Name]
		if !ok {
			missing = append(missing, c.Prefix+topic.Name)
		}
		t.partitions[topic.Name] = n
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s missing; run `quittance migrate`", ErrTopics, strings.Join(missing, ", "))
	}
	return t, t.check(c.topics())
}

// check refuses topics that belong together and differ in their partitions.
func (t *Topology) check(topics []schemas.Topic) error {
	first := map[string]string{}
	for _, topic := range topics {
		one, known := first[topic.Together]
		if topic.Together == "" || !known {
			first[topic.Together] = topic.Name
			continue
		}
		if a, b := t.partitions[one], t.partitions[topic.Name]; a != b {
			return fmt.Errorf("%w: %w: %s has %d partitions and %s has %d; they must be equal and were fixed when first created: restore the broker's topics, do not alter them",
				ErrTopics, errFixed, t.Name(one), a, t.Name(topic.Name), b)
		}
	}
	return nil
}

func list(ctx context.Context, c Config, cl *kgo.Client) (map[string]int32, error) {
	var names []string
	for _, t := range c.topics() {
		names = append(names, c.Prefix+t.Name)
	}
	details, err := kadm.NewClient(cl).ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("listing topics at %s: %w", strings.Join(c.Brokers, ","), err)
	}
	found := map[string]int32{}
	for name, d := range details {
		switch {
		case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		case d.Err != nil:
			return nil, fmt.Errorf("listing topic %s: %w", name, d.Err)
		default:
			found[name] = int32(len(d.Partitions)) //nolint:gosec // a partition count
		}
	}
	return found, nil
}

// Migrate creates the topics that are missing and sets the configuration of all.
// It never changes a partition count, and refuses counts that do not go together.
func Migrate(ctx context.Context, c Config, cl *kgo.Client) (created []string, err error) {
	found, err := list(ctx, c, cl)
	if err != nil {
		return nil, err
	}
	together := map[string]int32{} // what exists already decides
	for _, t := range c.topics() {
		if n, ok := found[c.Prefix+t.Name]; ok {
			together[t.Together] = n
		}
	}
	replication := c.Replication
	if replication == 0 {
		replication = -1
	}
	adm := kadm.NewClient(cl)
	for _, t := range c.topics() {
		name, config := c.Prefix+t.Name, topicConfig(t)
		if _, ok := found[name]; ok {
			if err := alter(ctx, adm, name, config); err != nil {
				return created, err
			}
			continue
		}
		n := t.Partitions
		if t.Together != "" {
			n = cmp.Or(together[t.Together], c.Partitions, n)
		}
		if _, err := adm.CreateTopic(ctx, n, replication, config, name); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return created, fmt.Errorf("creating topic %s: %w", name, err)
		}
		created = append(created, name)
	}
	// A broker answers a creation before it knows all of it, and before its parts
	// take records.
	for {
		err := hosted(ctx, c, cl)
		if err == nil || len(created) == 0 || errors.Is(err, errFixed) {
			return created, err
		}
		select {
		case <-ctx.Done():
			return created, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// hosted says that all topics are there and that every partition answers.
func hosted(ctx context.Context, c Config, cl *kgo.Client) error {
	if _, err := Load(ctx, c, cl); err != nil {
		return err
	}
	var names []string
	for _, t := range c.topics() {
		names = append(names, c.Prefix+t.Name)
	}
	return answer(ctx, kadm.NewClient(cl), names)
}

func answer(ctx context.Context, adm *kadm.Client, topics []string) error {
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("asking every partition: %w", err)
	}
	return nil
}

// AwaitTopics waits until every partition of topics that have just been created
// answers: a broker says that they are created before they take records.
func AwaitTopics(ctx context.Context, adm *kadm.Client, topics ...string) error {
	for {
		err := answer(ctx, adm, topics)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func alter(ctx context.Context, adm *kadm.Client, name string, config map[string]*string) error {
	var set []kadm.AlterConfig
	for _, k := range slices.Sorted(maps.Keys(config)) {
		set = append(set, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: config[k]})
	}
	answers, err := adm.AlterTopicConfigs(ctx, set, name)
	if err == nil && len(answers) > 0 {
		err = answers[0].Err
	}
	if err != nil {
		return fmt.Errorf("configuring topic %s: %w", name, err)
	}
	return nil
}

func topicConfig(t schemas.Topic) map[string]*string {
	config := map[string]*string{}
	set := func(k, v string) { config[k] = &v }
	switch {
	case t.Compacted:
		set("cleanup.policy", "compact")
	case t.Retention == 0:
		set("retention.ms", "-1")
	default:
		set("retention.ms", strconv.FormatInt(t.Retention.Milliseconds(), 10))
	}
	for k, v := range t.Config {
		set(k, v)
	}
	return config
}
