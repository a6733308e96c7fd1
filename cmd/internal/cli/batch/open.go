package batch

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/roles"
	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/schemas"
)

// withProcessor opens the processor of batches and their read model, and calls do.
func withProcessor(ctx context.Context, m *cli.Meta, do func(ctx context.Context, processor disbursements.Asker, store *disbursements.Store) error) (err error) {
	keys, err := m.OpenKeys()
	if err != nil {
		return err
	}
	signer, err := commands.NewSigner(keys, roles.ClientOperator)
	if err != nil {
		return err
	}
	log, err := m.Logger(m.Err)
	if err != nil {
		return err
	}
	topology, codec, err := access.OpenTopics(ctx, m)
	if err != nil {
		return err
	}
	processor, err := commands.New(ctx, commands.Config[disbursement.Command, disbursement.Answer]{
		Kafka: m.KafkaConfig(), Topology: topology, Family: schemas.Disbursement, Signer: signer, Protocol: commands.DisbursementProtocol(codec, topology),
		Log: log, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	// An interruption ends the command, not the connection by which an import discards its batch.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return processor.Run(running) })
	defer func() { stop(); err = errors.Join(err, g.Wait()) }()
	return do(ctx, processor, disbursements.NewStore(m.Pool, codec))
}
