package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// ErrRights says that the client lacks rights on the broker.
var ErrRights = errors.New("rights are missing")

// Resource is something that rights are given on.
type Resource struct {
	Type kmsg.ACLResourceType
	// Name is without the prefix of the installation. Topics whose name begins with "__" are
	// the broker's own and have no prefix.
	Name string
	// Prefixed means all resources whose names begin with Name.
	Prefixed bool
}

// FullName returns the name on the broker of an installation with that prefix.
func (r Resource) FullName(prefix string) string {
	if r.Type == kmsg.ACLResourceTypeTopic && strings.HasPrefix(r.Name, "__") {
		return r.Name
	}
	return prefix + r.Name
}

// Right is an operation that a client needs on a resource.
type Right struct {
	Resource
	Operation kmsg.ACLOperation
}

// operations are the operations that rights use, by the names of Kafka's own tools.
var operations = map[kmsg.ACLOperation]string{
	kmsg.ACLOperationRead: "Read", kmsg.ACLOperationWrite: "Write", kmsg.ACLOperationCreate: "Create", kmsg.ACLOperationDescribe: "Describe",
	kmsg.ACLOperationDescribeConfigs: "DescribeConfigs", kmsg.ACLOperationAlterConfigs: "AlterConfigs",
}

// OperationName returns the name of an operation as Kafka's tools write it.
func OperationName(o kmsg.ACLOperation) string { return operations[o] }

// resources are the types of resources, by the names of Kafka's own tools.
var resources = map[kmsg.ACLResourceType]string{
	kmsg.ACLResourceTypeTopic: "topic", kmsg.ACLResourceTypeGroup: "group", kmsg.ACLResourceTypeTransactionalId: "transactional-id",
}

// ResourceName returns the name of a type of resources as Kafka's tools write it.
func ResourceName(t kmsg.ACLResourceType) string { return resources[t] }

// CheckRights asks the broker what this client may do. The error wraps ErrRights if a right
// is missing. It names the principal, and the operation and the resource of each missing
// right. Rights on topics that do not exist count as given.
//
// For a Prefixed right it asks about the resource whose name is the beginning alone.
func CheckRights(ctx context.Context, c Config, rights []Right) error {
	// Version 5 of DescribeGroups tells the rights on groups that do not exist yet.
	cl, err := c.Client(kgo.MaxVersions(kversion.V3_8_0()))
	if err != nil {
		return err
	}
	defer cl.Close()
	allowed, err := allowedTopics(ctx, c, cl, rights)
	if err != nil {
		return err
	}
	missing := map[string][]string{}
	for _, r := range rights {
		may := true
		switch name := r.FullName(c.Prefix); r.Type { //nolint:exhaustive // rights are on these only
		case kmsg.ACLResourceTypeTopic:
			may = allowed[name].has(r.Operation)
		case kmsg.ACLResourceTypeGroup:
			may, err = mayGroup(ctx, cl, name, r.Operation)
		case kmsg.ACLResourceTypeTransactionalId:
			may, err = mayTransact(ctx, cl, name)
		}
		if err != nil {
			return err
		}
		if !may {
			what := OperationName(r.Operation) + " " + ResourceName(r.Type)
			missing[what] = append(missing[what], r.FullName(c.Prefix))
		}
	}
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		texts = append(texts, what+" "+strings.Join(missing[what], ", "))
	}
	if len(texts) == 0 {
		return nil
	}
	return c.rightsError(strings.Join(texts, "; "))
}

// rightsError names the principal beside what it may not do.
func (c Config) rightsError(what string) error {
	return fmt.Errorf("%w: %s may not %s; `quittance acls` prints the commands that give each role its rights", ErrRights, c.Security.Principal(), what)
}

// denied names the principal, the operation and the resource if err is the broker's refusal
// for want of a right. Otherwise it returns err.
func (c Config) denied(err error, o kmsg.ACLOperation, t kmsg.ACLResourceType, names ...string) error {
	if !IsDenied(err) {
		return err
	}
	return fmt.Errorf("%w: %w", c.rightsError(OperationName(o)+" "+ResourceName(t)+" "+strings.Join(names, ", ")), err)
}

// IsDenied reports whether err is a broker's refusal for want of a right.
func IsDenied(err error) bool {
	return errors.Is(err, ErrRights) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) ||
		errors.Is(err, kerr.TransactionalIDAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// bits are the operations that a client may do, as the broker encodes them.
type bits int32

// unknownBits means that the broker does not tell.
const unknownBits = bits(math.MinInt32)

func (b bits) has(o kmsg.ACLOperation) bool { return b == unknownBits || b&(1<<o) != 0 }

// allowedTopics returns what the client may do with the topics of rights, by full name.
func allowedTopics(ctx context.Context, c Config, cl *kgo.Client, rights []Right) (map[string]bits, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	out := map[string]bits{}
	for _, r := range rights {
		name := r.FullName(c.Prefix)
		if _, asked := out[name]; asked || r.Type != kmsg.ACLResourceTypeTopic {
			continue
		}
		out[name] = unknownBits
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	if len(req.Topics) == 0 {
		return out, nil
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("asking for the rights on topics: %w", err)
	}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case err == nil:
			out[*t.Topic] = bits(t.AuthorizedOperations)
		case IsDenied(err):
			out[*t.Topic] = 0
		}
	}
	return out, nil
}

// mayGroup reports whether the client may do an operation with a group.
func mayGroup(ctx context.Context, cl *kgo.Client, group string, o kmsg.ACLOperation) (bool, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{group}, true
	resp, err := req.RequestWith(ctx, cl)
	if err == nil && len(resp.Groups) == 1 {
		err = kerr.ErrorForCode(resp.Groups[0].ErrorCode)
	}
	switch {
	case IsDenied(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking for the rights on group %s: %w", group, err)
	case len(resp.Groups) != 1:
		return true, nil
	}
	return bits(resp.Groups[0].AuthorizedOperations).has(o), nil
}

// mayTransact reports whether the client may write with a transactional id. No request asks
// for that. This one ends a transaction of a producer that does not exist: the broker looks
// at the right first, and then refuses the producer.
func mayTransact(ctx context.Context, cl *kgo.Client, id string) (bool, error) {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = id, -1, -1
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	var answer *kerr.Error
	switch {
	case IsDenied(err):
		return false, nil
	case err != nil && !errors.As(err, &answer):
		return false, fmt.Errorf("asking for the rights on transactional id %s: %w", id, err)
	}
	return true, nil
}
