package journal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"quittance/internal/journal"
	"quittance/internal/kafka/consume"
)

// defaultEvery is the time between two copies of the names.
const defaultEvery = 15 * time.Second

// NamesConfig configures Names.
type NamesConfig struct {
	// Read returns the present names; required.
	Read func(context.Context) ([]journal.Name, error)
	// Store keeps them; required.
	Store *journal.Store
	// Every is the time between two copies; 15 s when zero.
	Every time.Duration
	// Log is required.
	Log *slog.Logger
}

// Names copies the names of agencies and applications to ClickHouse, so that reports show
// them beside the ids. Any number of them may run.
type Names struct{ cfg NamesConfig }

// NewNames makes Names.
func NewNames(cfg NamesConfig) (*Names, error) {
	if cfg.Read == nil || cfg.Store == nil || cfg.Log == nil {
		return nil, errors.New("journal: Read, Store and Log are required")
	}
	cfg.Every = cmp.Or(cfg.Every, defaultEvery)
	return &Names{cfg}, nil
}

// Run copies the names until ctx ends, then returns nil. While either database is away it
// tries again; the entries of the journal do not wait for it.
func (n *Names) Run(ctx context.Context) error {
	return consume.Every(ctx, n.cfg.Every, n.copy, func(err error) {
		n.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "copying the names of agencies and applications failed; it is tried again", slog.Any("error", err))
	})
}

func (n *Names) copy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, defaultInsertTimeout)
	defer cancel()
	names, err := n.cfg.Read(ctx)
	if err != nil {
		return err
	}
	_, err = n.cfg.Store.PutNames(ctx, names)
	return err
}
