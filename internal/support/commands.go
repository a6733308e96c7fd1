package support

import (
	"bytes"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
)

const (
	// commandsAtMost is the largest number of records that are read to find the commands of a
	// session. Its partition holds those of other agencies too.
	commandsAtMost = 200_000
	// commandsWithin bounds the time of reading.
	commandsWithin = 5 * time.Second
	// commandsBefore is how long before the creation of a session the reading begins.
	commandsBefore = time.Minute
)

// commands returns the commands about the session that Kafka still has, beginning with its
// creation.
func (d *Desk) commands(ctx context.Context, p *Page) []command {
	found, missing := d.readCommands(ctx, p)
	if missing.Code != "" {
		missing.Part = PartCommands
		p.Missing = append(p.Missing, missing)
	}
	return found
}

// command is a command with its place in Kafka.
type command struct {
	*record.Command
	source Source
}

// readCommands returns the commands, and what is missing; without a code nothing is.
func (d *Desk) readCommands(ctx context.Context, p *Page) (found []command, missing Missing) {
	const kept = 30 * 24 * time.Hour // as schemas.Topics says
	if d.Now.Sub(p.CreatedAt) > kept {
		return nil, Missing{Code: MissingExpired, Kept: kept}
	}
	ctx, cancel := context.WithTimeout(ctx, commandsWithin)
	defer cancel()
	since, err := d.Machine(ctx, p.CreatedAt.Add(-commandsBefore))
	if err != nil {
		return nil, Missing{Code: MissingUnread, Err: err}
	}
	cl, err := d.Kafka.Client()
	if err != nil {
		return nil, Missing{Code: MissingUnread, Err: err}
	}
	defer cl.Close()
	topic, partition := d.Topology.Name(schemas.TopicCommands), d.Topology.Partition(schemas.TopicCommands, p.TenantID)
	spans, err := kafka.Between(ctx, kadm.NewClient(cl), topic, since, time.Now().Add(time.Hour))
	if err != nil {
		return nil, Missing{Code: MissingUnread, Err: err}
	}
	span := spans[partition]
	whole := span.To
	span.To = min(span.To, span.From+commandsAtMost)
	id, at := []byte(p.ID), time.Time{}
	err = d.Kafka.Read(ctx, topic, map[int32]kafka.Span{partition: span}, nil, func(r *kgo.Record) (bool, error) {
		at = r.Timestamp
		if !bytes.Contains(r.Value, id) {
			return true, nil
		}
		var c record.Command
		if err := d.Codec.Decode(r.Value, &c); err == nil && c.SessionID == p.ID {
			found = append(found, command{&c, Source{r.Topic, r.Partition, r.Offset}})
		}
		return true, nil // others are the processor's poison
	})
	switch {
	case err != nil:
		return found, Missing{Code: MissingLater, Until: at.UTC(), Err: err}
	case span.To < whole:
		return found, Missing{Code: MissingBeyond, Read: commandsAtMost, Until: at.UTC()}
	}
	return found, Missing{}
}
