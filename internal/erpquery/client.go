package erpquery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/call"
	"quittance/internal/commands"
	"quittance/internal/erp"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/schemas"
)

// Patience is how long a Client waits for an answer: as long as an ERP may take, and the way there and back.
const Patience = erp.ReadTimeout + 500*time.Millisecond

// Config of a Client. Every field but Patience is required.
type Config struct {
	Kafka    kafka.Config
	Protocol Protocol
	// Patience is how long it waits for an answer; Patience when zero.
	Patience time.Duration
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Client is an erp.Asker that has `sink erp` ask. It holds no credentials of an ERP and uses only the agency and the mode
// of erp settings. It works while Run runs. Safe for concurrent use.
type Client struct {
	cfg      Config
	commands *commands.Client[Question, Answer]
}

// New makes a client. It finds the end of the answers, so that it reads those to all later questions.
func New(ctx context.Context, cfg Config) (*Client, error) {
	cfg.Patience = cmp.Or(cfg.Patience, Patience)
	c, err := commands.New(ctx, commands.Config[Question, Answer]{
		Kafka: cfg.Kafka, Topology: cfg.Protocol.Topology, Family: schemas.ERPQueries, Protocol: cfg.Protocol, Signer: commands.Unsigned, Log: cfg.Log, Metrics: cfg.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, commands: c}, nil
}

// Run passes answers to those who wait for them, until ctx ends.
func (c *Client) Run(ctx context.Context) error { return c.commands.Run(ctx) }

// Dues asks for the dues of a subject and checks each, as erp.Client.Dues. The fault is erp.FaultUnanswered if `sink erp`
// did not answer in time, and erp.FaultBusy if it could not ask in time.
func (c *Client) Dues(ctx context.Context, s registry.ERPSettings, subjectRef string) ([]erp.Due, []erp.Refused, call.Result) {
	begun := time.Now()
	q := Question{AgencyID: s.AgencyID, Live: s.Live, SubjectRef: subjectRef, NotAfter: begun.Add(c.cfg.Patience).UTC()}
	a, err := c.commands.AskWithin(ctx, q, c.cfg.Patience)
	switch {
	case err == nil:
		return erp.ReadDues(a.Body, a.Result)
	case ctx.Err() != nil:
		return nil, nil, call.Result{Fault: call.FaultInterrupted, Duration: time.Since(begun)}
	case errors.Is(err, commands.ErrUnavailable):
		return nil, nil, call.Result{Fault: erp.FaultUnanswered, Duration: time.Since(begun)}
	}
	c.cfg.Log.LogAttrs(ctx, slog.LevelError, "a question to an ERP cannot be sent", slog.Any("error", err))
	return nil, nil, call.Result{Fault: call.FaultUnusable, Duration: time.Since(begun)}
}
