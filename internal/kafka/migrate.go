package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/schemas"
)

// Errors of Migrate. Nothing was changed then.
var (
	// ErrPartitions says that topics are missing whose number of partitions can never
	// change, and that Config.Partitions does not give it.
	ErrPartitions = errors.New("the number of partitions is not given")
	// ErrReplication says that the cluster has fewer brokers than new topics have replicas.
	ErrReplication = errors.New("the cluster has fewer brokers than a topic has replicas")
)

// Change is a setting of a topic that differed from the table of topics.
type Change struct {
	// Topic is its full name.
	Topic, Setting string
	Old, New       string
}

// Migrated has the result of Migrate.
type Migrated struct {
	// Created are the full names of new topics.
	Created []string
	// Changed are the settings that Migrate has set.
	Changed []Change
	// Kept are retention times that are longer than those of the table. Migrate does not
	// change them, because a shorter time deletes records. New is the table's.
	Kept []Change
}

// Migrate creates missing topics and sets the settings of all topics. It never changes a
// number of partitions or replicas, and never shortens a retention. The error wraps
// ErrTopics if topics that belong together have different numbers of partitions, or other
// numbers than Config.Partitions.
func Migrate(ctx context.Context, c Config, cl *kgo.Client) (out Migrated, err error) {
	found, err := list(ctx, c, cl)
	if err != nil {
		return out, err
	}
	missing, err := c.missing(found)
	if err != nil {
		return out, err
	}
	adm := kadm.NewClient(cl)
	if out.Created, err = c.create(ctx, cl, missing); err != nil {
		return out, err
	}
	created := map[string]bool{}
	for _, name := range out.Created {
		created[name] = true
	}
	check := func() error {
		if _, err := Load(ctx, c, cl); err != nil {
			return err
		}
		return answer(ctx, adm, c.names())
	}
	if len(created) > 0 {
		err = await(ctx, check)
	} else {
		err = check()
	}
	if err != nil {
		return out, err
	}
	err = out.configure(ctx, c, cl, created)
	return out, err
}

// create creates topics with one request, which the broker answers after one change of its
// metadata, and returns the full names of those that it has created.
func (c Config) create(ctx context.Context, cl *kgo.Client, topics []schemas.Topic) (created []string, err error) {
	if len(topics) == 0 {
		return nil, nil
	}
	request := kmsg.NewCreateTopicsRequest()
	request.TimeoutMillis = 15_000
	for _, t := range topics {
		one := kmsg.NewCreateTopicsRequestTopic()
		one.Topic, one.NumPartitions, one.ReplicationFactor = c.Prefix+t.Name, t.Partitions, cmp.Or(c.Replication, -1)
		values := pointers(settings(t, int(c.Replication)))
		for _, key := range slices.Sorted(maps.Keys(values)) {
			setting := kmsg.NewCreateTopicsRequestTopicConfig()
			setting.Name, setting.Value = key, values[key]
			one.Configs = append(one.Configs, setting)
		}
		request.Topics = append(request.Topics, one)
	}
	answer, err := request.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("creating topics: %w", err)
	}
	for _, t := range answer.Topics {
		reason := kerr.ErrorForCode(t.ErrorCode)
		switch {
		case errors.Is(reason, kerr.TopicAlreadyExists): // another process migrates, too
		case reason == nil:
			created = append(created, t.Topic)
		case err != nil: // the first one is told
		case errors.Is(reason, kerr.InvalidReplicationFactor):
			err = fmt.Errorf("creating topic %s with %d replicas: %w: %w", t.Topic, c.Replication, ErrReplication, reason)
		default:
			err = fmt.Errorf("creating topic %s: %w", t.Topic, c.denied(reason, kmsg.ACLOperationCreate, kmsg.ACLResourceTypeTopic, t.Topic))
		}
	}
	return created, err
}

// missing returns the topics that do not exist, with the number of partitions that each
// will have.
func (c Config) missing(found map[string]size) ([]schemas.Topic, error) {
	together := map[string]int32{} // new topics follow the existing topics
	for _, t := range c.topics() {
		is, ok := found[c.Prefix+t.Name]
		if !ok || t.Together == "" {
			continue
		}
		if together[t.Together] = is.partitions; c.Partitions != 0 && c.Partitions != is.partitions {
			return nil, fmt.Errorf("%w: %w: %s has %d partitions and cannot have %d: the number is part of every id and was fixed when the topic was created",
				ErrTopics, errFixed, c.Prefix+t.Name, is.partitions, c.Partitions)
		}
	}
	var missing []schemas.Topic
	for _, t := range c.topics() {
		if _, ok := found[c.Prefix+t.Name]; ok {
			continue
		}
		if t.Together != "" {
			n := cmp.Or(together[t.Together], c.Partitions)
			if n == 0 && c.PartitionsRequired {
				return nil, fmt.Errorf("creating topic %s: %w", c.Prefix+t.Name, ErrPartitions)
			}
			t.Partitions = cmp.Or(n, t.Partitions)
		}
		missing = append(missing, t)
	}
	return missing, nil
}

// configure sets the settings that differ from the table, and waits until the broker uses
// them.
func (out *Migrated) configure(ctx context.Context, c Config, cl *kgo.Client, created map[string]bool) error {
	found, err := list(ctx, c, cl)
	if err != nil {
		return err
	}
	adm := kadm.NewClient(cl)
	present, err := describe(ctx, c, adm)
	if err != nil {
		return err
	}
	all := map[string]map[string]string{}
	for _, t := range c.topics() {
		name := c.Prefix + t.Name
		set := map[string]string{}
		for key, want := range settings(t, found[name].replicas) {
			is := present[name][key]
			change := Change{name, key, is.value, want}
			switch {
			case is.value == want && is.own:
				continue
			case is.value == want: // the broker's default may change
			case created[name]: // only the settings that depend on the number of replicas
			case more(key, is.value, want):
				if key == settingRetention {
					out.Kept = append(out.Kept, change)
				}
				continue
			default:
				out.Changed = append(out.Changed, change)
			}
			set[key] = want
		}
		if err := alter(ctx, adm, name, set); err != nil {
			return fmt.Errorf("configuring topic %s: %w", name, c.denied(err, kmsg.ACLOperationAlterConfigs, kmsg.ACLResourceTypeTopic, name))
		}
		all[name] = set
	}
	return await(ctx, func() error { return inForce(ctx, c, adm, all) })
}

// inForce returns an error if the broker does not report settings that were made.
func inForce(ctx context.Context, c Config, adm *kadm.Client, made map[string]map[string]string) error {
	present, err := describe(ctx, c, adm)
	if err != nil {
		return err
	}
	for topic, settings := range made {
		for key, value := range settings {
			if is := present[topic][key].value; is != value {
				return fmt.Errorf("%s of %s is still %s after it was set to %s", key, topic, is, value)
			}
		}
	}
	return nil
}

// alter sets settings of a topic.
func alter(ctx context.Context, adm *kadm.Client, name string, settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	var set []kadm.AlterConfig
	values := pointers(settings)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		set = append(set, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: values[key]})
	}
	answers, err := adm.AlterTopicConfigs(ctx, set, name)
	if err == nil && len(answers) > 0 {
		err = answers[0].Err
	}
	return err
}

func pointers(settings map[string]string) map[string]*string {
	out := map[string]*string{}
	for key, value := range settings {
		out[key] = &value
	}
	return out
}
