package roles

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/schemas"
)

func ingressRole() Role {
	return Role{
		Kind: KindIngress, Name: "ingress", Short: "the HTTP edge: ministry API, checkout pages, operators' callbacks",
		Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry, NeedReferenceKey, NeedChannels},
		Access: Access{
			Reads:  []string{schemas.TopicReplies, schemas.TopicReferences},
			Writes: []string{schemas.TopicCommands, schemas.TopicReferences, schemas.TopicMessages},
		},
		Host: publicHost,
		Surfaces: []opener{
			ministrySurface, sdkSurface, pagesSurface, reportsSurface, messagesSurface, counterSurface, cashinSurface,
			citizenSurface, verifySurface, docsSurface,
		},
		GCPercent: gcPercent, Run: (*Base).ingress,
	}
}

// gcPercent of an ingress that has a process of its own. Its live heap is small and most
// of what it allocates lasts for one request: the default of 100 took a sixteenth of its
// CPU time. Processors keep the default, because their block cache is in the heap.
const gcPercent = 400

// publicHost is where citizens, integrators and operators reach the service.
func publicHost(b *Base) (Host, error) {
	if b.CheckoutURL == "" && b.Developer() {
		b.CheckoutURL = "http://" + b.Listen
	}
	if err := b.checkPublicURL("checkout-url", b.CheckoutURL); err != nil {
		return Host{}, err
	}
	return Host{
		Name: "ingress", Listen: b.Listen, URL: strings.TrimSuffix(b.CheckoutURL, "/"),
		Limits: Limits{Connections: b.MaxConnections, Write: writeTimeout},
	}, nil
}

// ingress starts what the ingress does besides its surfaces.
func (b *Base) ingress() error {
	h, err := b.commands()
	if err != nil {
		return err
	}
	b.Run("commands probe", b.probe(h))
	b.readyWithNews()
	return b.tellCitizens()
}

// readyWithNews makes the ingress unready while it cannot tell which keys are revoked.
func (b *Base) readyWithNews() { b.readyWhen("registry", b.Identities.Fresh) }

// probe makes the ingress ready once any partition has answered a command about a session that does
// not exist. Then requests reach a processor and answers return. A partition that is being restored
// concerns its agencies alone.
func (b *Base) probe(h *commands.Checkout) func(context.Context) error {
	var answered atomic.Bool
	b.readyWhen("ingress", func() error {
		if !answered.Load() {
			return errors.New("no partition answers; is a processor running?")
		}
		return nil
	})
	return func(ctx context.Context) error {
		partitions := b.Topology.Count(schemas.TopicCommands)
		for p := int32(0); ctx.Err() == nil; p = (p + 1) % partitions {
			id := checkout.NewSessionID(b.Now(), p, [16]byte{})
			_, err := h.Ask(ctx, checkout.Command{At: b.Now(), SessionID: id, Do: checkout.Enquire{}})
			if err == nil {
				answered.Store(true)
				return nil
			}
			b.Log.Debug("waiting for a processor", slog.Int("partition", int(p)), slog.Any("error", err))
		}
		return nil
	}
}
