package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Session timeouts of consumer groups: how long after a member's death its partitions move
// to the other members.
const (
	// QuickSession needs a broker whose group.min.session.timeout.ms is at most this.
	QuickSession = 2 * time.Second
	// SlowSession is the least that a broker allows unless it is configured otherwise.
	SlowSession = 6 * time.Second

	heartbeatsOfSession = 4
	heartbeatMost       = time.Second
	askSessionWithin    = 5 * time.Second
)

// Heartbeat returns the interval of heartbeats for a session timeout. Several heartbeats
// may be lost before the broker declares a member dead.
func Heartbeat(session time.Duration) time.Duration {
	return min(session/heartbeatsOfSession, heartbeatMost)
}

// committedTries is how often Committed asks while the client does not know the names of topics.
const committedTries = 10

// Committed returns the offsets that a group (its name with the prefix) has committed; none of a group that has
// never read.
func Committed(ctx context.Context, adm *kadm.Client, group string) (kadm.OffsetResponses, error) {
	for tries := 1; ; tries++ {
		committed, err := adm.FetchOffsets(ctx, group)
		if err == nil {
			err = committed.Error()
		}
		switch {
		case err == nil, errors.Is(err, kerr.GroupIDNotFound): // the group has never read
			return committed, nil
		case errors.Is(err, kerr.UnknownTopicID) && tries < committedTries:
			// The broker answers with ids, and the client has forgotten the name of one because of another
			// request at the same time.
			continue
		}
		return nil, fmt.Errorf("asking for the offsets of %s: %w", group, err)
	}
}

// GroupSession returns the session timeout for the members of a group (its name without
// the prefix): QuickSession if the broker allows it, otherwise SlowSession. With an error,
// which says why the broker did not answer, it is SlowSession.
func GroupSession(ctx context.Context, c Config, group string) (time.Duration, error) {
	cl, err := c.Client()
	if err != nil {
		return SlowSession, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, askSessionWithin)
	defer cancel()
	// The broker refuses this member, which never joined, and changes nothing. It looks at
	// the session timeout first. To ask for the setting itself needs a right on the cluster.
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = c.Prefix+group, "asks-for-the-session-timeout", "consumer"
	req.SessionTimeoutMillis = int32(QuickSession / time.Millisecond)
	req.RebalanceTimeoutMillis = req.SessionTimeoutMillis
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = kgo.CooperativeStickyBalancer().ProtocolName()
	req.Protocols = append(req.Protocols, protocol)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return SlowSession, fmt.Errorf("asking for the shortest session timeout of group %s: %w", req.Group, err)
	}
	switch err := kerr.ErrorForCode(resp.ErrorCode); {
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return SlowSession, nil
	case err == nil, errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.InconsistentGroupProtocol):
		return QuickSession, nil
	default:
		return SlowSession, fmt.Errorf("asking for the shortest session timeout of group %s: %w", req.Group, err)
	}
}

// Lag returns for each topic the number of committed records that a group has not processed.
// Markers of transactions count: a group that does not read them has a lag of one in a
// partition that ends with a marker. The names are full.
func Lag(ctx context.Context, adm *kadm.Client, group string, topics ...string) (map[string]int64, error) {
	open, err := unsettled(ctx, adm, group, topics...)
	if err != nil {
		return nil, err
	}
	lag := map[string]int64{}
	for _, topic := range topics {
		lag[topic] = 0
		for _, s := range open[topic] {
			lag[topic] += s.To - s.From
		}
	}
	return lag, nil
}
