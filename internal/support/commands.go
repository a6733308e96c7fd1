package support

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
func (d *Desk) commands(ctx context.Context, p *Page) []*record.Command {
	found, err := d.readCommands(ctx, p)
	if err != nil {
		p.Missing = append(p.Missing, Missing{PartCommands, err.Error()})
	}
	return found
}

func (d *Desk) readCommands(ctx context.Context, p *Page) (found []*record.Command, err error) {
	const kept = 30 * 24 * time.Hour // as schemas.Topics says
	if d.Now.Sub(p.CreatedAt) > kept {
		return nil, errors.New("they are kept for 30 days, and the session is older")
	}
	ctx, cancel := context.WithTimeout(ctx, commandsWithin)
	defer cancel()
	since, err := d.Machine(ctx, p.CreatedAt.Add(-commandsBefore))
	if err != nil {
		return nil, err
	}
	cl, err := d.Kafka.Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	topic, partition := d.Topology.Name(schemas.TopicCommands), d.Topology.Partition(schemas.TopicCommands, p.TenantID)
	spans, err := kafka.Between(ctx, kadm.NewClient(cl), topic, since, time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
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
			found = append(found, &c)
		}
		return true, nil // others are the processor's poison
	})
	switch {
	case err != nil:
		return found, fmt.Errorf("those after %s were not read: %w", at.UTC().Format(time.RFC3339), err)
	case span.To < whole:
		return found, fmt.Errorf("%d records of all sessions were read, up to %s; later ones were not", commandsAtMost, at.UTC().Format(time.RFC3339))
	}
	return found, nil
}
