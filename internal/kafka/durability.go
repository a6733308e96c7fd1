package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/schemas"
)

// Settings of a topic that decide whether records can be lost.
const (
	settingCleanup       = "cleanup.policy"
	settingRetention     = "retention.ms"
	settingRetentionSize = "retention.bytes"
	settingInSync        = "min.insync.replicas"
	settingUnclean       = "unclean.leader.election.enable"
)

// settings returns the settings of a topic that has that many replicas. With fewer than
// schemas.Replicas, one replica must be enough for a write: two of two would end all writes
// when one broker is away.
func settings(t schemas.Topic, replicas int) map[string]string {
	out := map[string]string{settingCleanup: "delete", settingRetention: "-1", settingRetentionSize: "-1", settingInSync: "1", settingUnclean: "false"}
	if replicas >= schemas.Replicas {
		out[settingInSync] = strconv.Itoa(schemas.InSyncReplicas)
	}
	switch {
	case t.Compacted:
		out[settingCleanup] = "compact"
		delete(out, settingRetention)
	case t.Retention > 0:
		out[settingRetention] = strconv.FormatInt(t.Retention.Milliseconds(), 10)
	}
	maps.Copy(out, t.Config)
	return out
}

// more reports whether a setting's value keeps records longer, or on more disks, than want.
func more(setting, value, want string) bool {
	is, err := strconv.ParseInt(value, 10, 64)
	need, err2 := strconv.ParseInt(want, 10, 64)
	if err != nil || err2 != nil {
		return false
	}
	switch setting {
	case settingRetention:
		return need >= 0 && (is < 0 || is > need) // -1 is for ever
	case settingInSync:
		return is > need
	}
	return false
}

// setting is the value of a setting. It is the topic's own if it is not a default of the
// broker.
type setting struct {
	value string
	own   bool
}

// describe returns the settings of the installation's topics.
func describe(ctx context.Context, c Config, adm *kadm.Client) (map[string]map[string]setting, error) {
	configs, err := adm.DescribeTopicConfigs(ctx, c.names()...)
	if err != nil {
		return nil, fmt.Errorf("asking for the settings of topics: %w", c.denied(err, kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeTopic, firsts(c.names())))
	}
	out := map[string]map[string]setting{}
	for _, topic := range configs {
		if topic.Err != nil {
			return nil, fmt.Errorf("asking for the settings of %s: %w", topic.Name, c.denied(topic.Err, kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeTopic, topic.Name))
		}
		values := map[string]setting{}
		for _, c := range topic.Configs {
			own := c.Source == kmsg.ConfigSourceDynamicTopicConfig
			if !values[c.Key].own { // the in-process broker lists the default, too
				values[c.Key] = setting{c.MaybeValue(), own}
			}
		}
		out[topic.Name] = values
	}
	return out, nil
}

// Durability describes how safe the records of an installation are.
type Durability struct {
	// Replicas and InSync are those of the topic with the fewest.
	Replicas, InSync int
}

// ErrUnsafe says that records may be lost. It wraps ErrTopics.
var ErrUnsafe = fmt.Errorf("%w: payments may be lost", ErrTopics)

// CheckDurability returns an error that wraps ErrUnsafe if a topic has fewer replicas than
// schemas.Replicas, or a setting that keeps less than the table of topics says. The error
// says how to mend it. acceptOneReplica accepts any number of replicas.
//
// The broker's own topics of offsets and transactions need as many replicas, because
// without them a partition that was restored cannot be read or written. They are checked
// if they exist and the client may see them.
func CheckDurability(ctx context.Context, c Config, cl *kgo.Client, acceptOneReplica bool) (Durability, error) {
	sizes, err := list(ctx, c, cl)
	if err != nil {
		return Durability{}, err
	}
	adm := kadm.NewClient(cl)
	present, err := describe(ctx, c, adm)
	if err != nil {
		return Durability{}, err
	}
	out := Durability{Replicas: math.MaxInt, InSync: math.MaxInt}
	var few []string
	wrong := map[string][]string{}
	for _, t := range c.topics() {
		name := c.Prefix + t.Name
		out.Replicas = min(out.Replicas, sizes[name].replicas)
		if sizes[name].replicas < schemas.Replicas {
			few = append(few, name)
		}
		for key, want := range settings(t, schemas.Replicas) {
			value := present[name][key].value
			if key == settingInSync {
				n, _ := strconv.Atoi(value) // the broker's own number
				if out.InSync = min(out.InSync, n); sizes[name].replicas < schemas.Replicas {
					continue // the replicas come first
				}
			}
			if _, other := t.Config[key]; !other && value != want && !more(key, value, want) {
				wrong[key] = append(wrong[key], fmt.Sprintf("%s (%s, not %s)", name, cmp.Or(value, "none"), want))
			}
		}
	}
	if acceptOneReplica {
		few = nil
	} else {
		few = append(few, internalTopics(ctx, adm)...)
	}
	return out, unsafeError(few, wrong)
}

// internalTopics returns the broker's own topics that have too few replicas.
func internalTopics(ctx context.Context, adm *kadm.Client) (few []string) {
	details, err := adm.ListTopicsWithInternal(ctx, "__consumer_offsets", "__transaction_state")
	if err != nil {
		return nil
	}
	for _, d := range details.Sorted() {
		if d.Err == nil && sizeOf(d).replicas < schemas.Replicas {
			few = append(few, d.Topic)
		}
	}
	return few
}

func unsafeError(few []string, wrong map[string][]string) error {
	var errs []error
	if len(few) > 0 {
		errs = append(errs, fmt.Errorf("%w: fewer than %d replicas: %s: add replicas with Kafka's kafka-reassign-partitions.sh, or give --accept-one-replica to accept that one lost disk loses payments",
			ErrUnsafe, schemas.Replicas, firsts(few)))
	}
	for _, key := range slices.Sorted(maps.Keys(wrong)) {
		errs = append(errs, fmt.Errorf("%w: wrong %s: %s: run `quittance migrate`, which sets it", ErrUnsafe, key, firsts(wrong[key])))
	}
	return errors.Join(errs...)
}

// firsts joins the first names for an error.
func firsts(names []string) string {
	const shown = 3
	slices.Sort(names)
	if n := len(names); n > shown {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", n-shown)
	}
	return strings.Join(names, ", ")
}
