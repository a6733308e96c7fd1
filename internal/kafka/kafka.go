// Package kafka is the adapter of the Kafka broker. It creates clients, creates and checks
// the topics of an installation, and reads ranges of records.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/internal/kafka/security"
	"quittance/schemas"
)

// Config names the broker and the installation on it.
type Config struct {
	// Brokers are the host:port addresses of the first connections.
	Brokers []string
	// Security of the connections. The zero value is plaintext. JSON leaves it out, because
	// it has a secret.
	Security security.Config `json:"-"`
	// Prefix is the prefix of the names of topics and groups. It separates installations
	// that share a broker. Empty in production.
	Prefix string
	// Replication is the replication factor of new topics; the broker's default when 0.
	Replication int16
	// Partitions is the number of partitions of new topics that belong together by agency;
	// schemas.DefaultPartitions when 0.
	Partitions int32
	// PartitionsRequired makes Migrate return ErrPartitions instead of using
	// schemas.DefaultPartitions.
	PartitionsRequired bool
	// Topics are the topics of the installation; schemas.Topics when nil. Tests add the
	// family of another processor.
	Topics []schemas.Topic
}

// errFixed says that topics are wrong in a way that cannot change by itself.
var errFixed = errors.New("partition counts differ")

// ErrTopics says that the broker's topics are not those that this version needs.
var ErrTopics = errors.New("topics are not ready")

// ErrMissing says that topics do not exist yet. It wraps ErrTopics.
var ErrMissing = fmt.Errorf("%w: missing", ErrTopics)

// Client creates a client with the options that all our clients have, and with opts.
func (c Config) Client(opts ...kgo.Opt) (*kgo.Client, error) {
	base := append(c.Security.Options(),
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID("quittance"),
		kgo.MetadataMinAge(20*time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration { return min(time.Duration(tries)*50*time.Millisecond, time.Second) }),
	)
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("creating a Kafka client: %w", err)
	}
	return cl, nil
}

// Producer creates a client that writes outside transactions: idempotent, acks from all
// replicas, no linger. The caller chooses the partitions.
func (c Config) Producer(opts ...kgo.Opt) (*kgo.Client, error) {
	return c.Client(append([]kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(30 * time.Second),
	}, opts...)...)
}

// Topology describes the topics of an installation on the broker.
type Topology struct {
	prefix     string
	partitions map[string]int32
}

// Name returns a topic's name on the broker.
func (t *Topology) Name(topic string) string { return t.prefix + topic }

// Count returns a topic's number of partitions.
func (t *Topology) Count(topic string) int32 { return t.partitions[topic] }

// Partition returns the partition of a topic's records with the key.
func (t *Topology) Partition(topic, key string) int32 {
	return schemas.PartitionOf(key, t.partitions[topic])
}

// topics returns the topics of the installation.
func (c Config) topics() []schemas.Topic {
	if c.Topics != nil {
		return c.Topics
	}
	return schemas.Topics()
}

// names returns the names of the installation's topics on the broker.
func (c Config) names() []string {
	var names []string
	for _, t := range c.topics() {
		names = append(names, c.Prefix+t.Name)
	}
	return names
}

// Load reads the topics of the installation. If a topic is missing, or topics that belong
// together have different numbers of partitions, the error wraps ErrTopics and says what
// to do.
func Load(ctx context.Context, c Config, cl *kgo.Client) (*Topology, error) {
	found, err := list(ctx, c, cl)
	if err != nil {
		return nil, err
	}
	var missing []string
	t := &Topology{prefix: c.Prefix, partitions: map[string]int32{}}
	for _, topic := range c.topics() {
		is, ok := found[c.Prefix+topic.Name]
		if !ok {
			missing = append(missing, c.Prefix+topic.Name)
		}
		t.partitions[topic.Name] = is.partitions
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w %s; run `quittance migrate`", ErrMissing, strings.Join(missing, ", "))
	}
	return t, t.check(c.topics())
}

// check returns an error if topics that belong together have different numbers of
// partitions.
func (t *Topology) check(topics []schemas.Topic) error {
	first := map[string]string{}
	for _, topic := range topics {
		one, known := first[topic.Together]
		if topic.Together == "" || !known {
			first[topic.Together] = topic.Name
			continue
		}
		if a, b := t.partitions[one], t.partitions[topic.Name]; a != b {
			return fmt.Errorf("%w: %w: %s has %d partitions and %s has %d; these numbers must be equal and must not change: restore the topic that was altered",
				ErrTopics, errFixed, t.Name(one), a, t.Name(topic.Name), b)
		}
	}
	return nil
}

// size is the size of a topic on the broker.
type size struct {
	partitions int32
	// replicas is that of the partition with the fewest replicas.
	replicas int
}

// list returns the sizes of the topics that exist, by name on the broker.
func list(ctx context.Context, c Config, cl *kgo.Client) (map[string]size, error) {
	details, err := kadm.NewClient(cl).ListTopics(ctx, c.names()...)
	if IsDenied(err) {
		// The broker does not say which topic it is.
		var rights []Right
		for _, name := range c.topics() {
			rights = append(rights, Right{Resource{Type: kmsg.ACLResourceTypeTopic, Name: name.Name}, kmsg.ACLOperationDescribe})
		}
		if missing := CheckRights(ctx, c, rights); missing != nil {
			err = missing
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listing topics at %s: %w", strings.Join(c.Brokers, ","), err)
	}
	found := map[string]size{}
	for name, d := range details {
		switch {
		case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		case d.Err != nil:
			return nil, fmt.Errorf("listing topic %s: %w", name, d.Err)
		default:
			found[name] = sizeOf(d)
		}
	}
	return found, nil
}

func sizeOf(d kadm.TopicDetail) size {
	out := size{partitions: int32(len(d.Partitions)), replicas: math.MaxInt} //nolint:gosec // a partition count
	for _, p := range d.Partitions {
		out.replicas = min(out.replicas, len(p.Replicas))
	}
	return out
}

// await repeats try until it succeeds, its error wraps errFixed, or ctx ends. A broker
// confirms the creation of a topic before all its partitions accept records.
func await(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || errors.Is(err, errFixed) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// answer returns nil if every partition of the topics answers.
func answer(ctx context.Context, adm *kadm.Client, topics []string) error {
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("asking every partition for its end: %w", err)
	}
	return nil
}

// AwaitTopics waits until every partition of new topics answers.
func AwaitTopics(ctx context.Context, adm *kadm.Client, topics ...string) error {
	return await(ctx, func() error { return answer(ctx, adm, topics) })
}
