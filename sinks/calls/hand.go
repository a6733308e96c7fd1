package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"

	"quittance/internal/kafka/consume"
	"quittance/schemas/record"
)

// Hand is what a request writes with while it is in hand. As a context it ends with the
// drain: what has begun is reported until then.
type Hand struct {
	context.Context

	record     *kgo.Record
	about      About
	cfg        *Config
	broker     Broker
	unknown    *prometheus.CounterVec
	complain   *rate.Sometimes
	complained bool // about the unknown account
}

// Command writes a signed command to a topic, into the partition of its key. It tries until
// the drain ends. Other errors are faults of the program.
func (h *Hand) Command(topic, key string, command record.Record) error {
	value, err := h.cfg.Codec.Encode(command)
	if err != nil {
		return err
	}
	r := &kgo.Record{Topic: h.cfg.Topology.Name(topic), Partition: h.cfg.Topology.Partition(topic, key), Key: []byte(key), Value: value}
	h.cfg.Commands.Sign(r)
	for n := 0; ; n++ {
		again := *r // the client changes the record
		err := h.broker.Produce(h.Context, &again)
		if err == nil {
			return nil
		}
		if h.Err() != nil || errors.Is(err, kgo.ErrClientClosed) {
			return errLeft
		}
		h.Warn("reporting an outcome", err)
		if !consume.Sleep(h.Context, backoff(n)) {
			return errLeft
		}
	}
}

// First reports whether nobody has read the request before this process, so that no call of it was made before.
func (h *Hand) First() bool { return h.broker.First(h.record) }

// Reported returns the outcome of a request whose report ended with an error of Command, or
// nil. Any other error is a fault of the program: the poison topic keeps the record until it
// is mended.
func (h *Hand) Reported(outcome string, err error) string {
	switch {
	case err == nil:
		return outcome
	case !errors.Is(err, errLeft) && h.broker.SetAside(h.Context, h.record, fmt.Errorf("reporting an outcome: %w", err)):
		return OutcomePoison
	}
	return OutcomeLeft
}

// Say writes a record that nobody waits for long, once and unsigned.
func (h *Hand) Say(ctx context.Context, topic string, partition int32, key string, word record.Record) error {
	value, err := h.cfg.Codec.Encode(word)
	if err != nil {
		return err
	}
	return h.broker.Produce(ctx, &kgo.Record{Topic: h.cfg.Topology.Name(topic), Partition: partition, Key: []byte(key), Value: value})
}

// NoAccount counts a request whose account is unknown, once. It reports whether this is the
// first time: nobody can ask about its payment, so each is worth a line in the log.
func (h *Hand) NoAccount() (first bool) {
	if h.complained {
		return false
	}
	h.complained = true
	h.unknown.WithLabelValues(h.about.Operator, string(h.about.Kind)).Inc()
	return true
}

// Warn logs a failure of an operator or the broker, at most once a second for all requests.
func (h *Hand) Warn(doing string, err error) {
	h.complain.Do(func() {
		h.cfg.Log.LogAttrs(h.Context, slog.LevelWarn, "a step of a request to an operator failed",
			slog.String("doing", doing), slog.String("operator", h.about.Operator), slog.String(string(h.cfg.Exemplar), h.about.ID),
			slog.Any("error", err))
	})
}
