package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sr"

	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/signed"
	"quittance/reconciliation"
)

const (
	// awaitEvery is the pause between two tries of a step of the start.
	awaitEvery = time.Second
	// awaitTold is how often the log says what a role waits for.
	awaitTold = time.Minute
)

// Run runs one role until ctx ends. Its health address is served first. Then it waits, unready, for the
// servers, the topics and the migrations that it needs, for as long as it takes. Only a refusal ends
// it: a setting that is missing, credentials or a certificate that are not accepted, a right that it
// lacks, topics that may lose payments.
func Run(ctx context.Context, s Settings, log *slog.Logger, r Role) error {
	if err := s.CheckRole(r); err != nil {
		return err
	}
	s.print(log)
	b := newBase(ctx, s, log)
	b.patient = true
	b.awaits("the start")
	b.readyWhen("start", func() error {
		if what := b.awaited.Load(); what != nil {
			return fmt.Errorf("waiting for %s", *what)
		}
		return nil
	})
	b.Run("systemd", b.tellSystemd)
	b.Start((*Base).ServeHealth, func(b *Base) error { return b.open(b.ctx) }, r.Start, func(b *Base) error {
		b.awaited.Store(nil)
		return nil
	})
	return b.Wait()
}

// awaits tells what the start waits for.
func (b *Base) awaits(what string) { b.awaited.Store(&what) }

// await makes a step of the start. A role that runs for itself repeats it while what the step needs is
// not there.
func (b *Base) await(what string, step func() error) error {
	var told time.Time
	for {
		if b.patient {
			b.awaits(what)
		}
		err := step()
		if err == nil || !b.patient || !comes(err) || b.ctx.Err() != nil {
			return err
		}
		if time.Since(told) >= awaitTold {
			told = time.Now()
			b.Log.Warn("waiting", slog.String("for", what), slog.Any("error", err))
		}
		b.awaits(what + ": " + err.Error())
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-time.After(awaitEvery):
		}
	}
}

// comes reports whether what a step lacks may come without a change of this process: a server that is
// away or starts, topics and migrations that are not made yet.
func comes(err error) bool {
	var answer *sr.ResponseError
	var broker *kerr.Error
	var network net.Error
	switch {
	case errors.Is(err, kafka.ErrMissing), errors.Is(err, errPending), errors.Is(err, reconciliation.ErrPending), errors.Is(err, signed.ErrNotSigned), postgres.IsAway(err):
		return true
	case errors.As(err, &answer):
		return answer.StatusCode == 404 || answer.StatusCode == 429 || answer.StatusCode >= 500 // 404: a schema is not registered yet
	case errors.As(err, &broker):
		return broker.Retriable
	}
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}
