package roles

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"

	"quittance/internal/kafka"
	"quittance/internal/signed"
	"quittance/reconciliation"
	observe "quittance/test/await"
	"quittance/test/servers"
)

// After a power cut the roles started before their servers. They ended after a minute, and whoever
// had no supervisor had no service. Now the health address is there first, /readyz names what is
// awaited, and a stop ends the wait as it ends a role that runs.
func TestRoleWaitsForItsServers(t *testing.T) {
	t.Parallel()
	health := freeAddress(t)
	ctx, terminate := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Settings{Kafka: freeAddress(t), SchemaRegistry: "http://127.0.0.1:1", Health: health}, servers.Logger(t), Role{Name: "test"})
	}()
	var said string
	observe.Within(10*time.Second, func() bool {
		_, err := ask(ctx, "http://"+health+"/healthz")
		status, body := get(t, "http://"+health+"/readyz")
		said = fmt.Sprintf("%d %s", status, body)
		return err == nil && strings.Contains(said, "waiting for Kafka: ")
	})
	if !strings.HasPrefix(said, "503 start: waiting for Kafka: ") {
		t.Errorf("/readyz says %q", said)
	}
	terminate()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the wait does not end")
	}
}

// A refusal ends the start: nothing comes of waiting.
func TestRefusalsEndTheStart(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		kafka.ErrUnsafe, kafka.ErrRights, fmt.Errorf("signing in: %w", kerr.SaslAuthenticationFailed), ErrSettings, signed.ErrOtherKeys,
		fmt.Errorf("connecting: %w", &pgconn.PgError{Code: "28P01"}), &pgconn.PgError{Code: "3D000"}, errors.New("another"),
	} {
		if comes(err) {
			t.Errorf("%v is awaited", err)
		}
	}
	for _, err := range []error{
		kafka.ErrMissing, fmt.Errorf("3 %w", errPending), reconciliation.ErrPending, fmt.Errorf("opening: %w", signed.ErrNotSigned), context.DeadlineExceeded, kerr.CoordinatorNotAvailable,
		&pgconn.PgError{Code: "57P03"}, &pgconn.PgError{Code: "53300"},
	} {
		if !comes(err) {
			t.Errorf("%v ends the start", err)
		}
	}
	if err := Run(t.Context(), Settings{}, servers.Logger(t), Role{}); !errors.Is(err, ErrSettings) {
		t.Errorf("without addresses: %v", err)
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answerOf(req)
}
