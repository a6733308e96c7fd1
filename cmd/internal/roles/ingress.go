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
		Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry, NeedReferenceKey, NeedChannels, NeedDues}, Keys: edgeKeys(),
		Access: Access{
			Reads:  []string{schemas.TopicReplies, schemas.TopicReferences},
			Writes: []string{schemas.TopicCommands, schemas.TopicReferences, schemas.TopicMessages},
		}.asksERPs(),
		Databases: ingressDatabases(),
		Host:      publicHost,
		Surfaces: []opener{
			ministrySurface, sdkSurface, pagesSurface, reportsSurface, messagesSurface, counterSurface, cashinSurface,
			citizenSurface, verifySurface, docsSurface,
		},
		GCPercent: gcPercent, Run: (*Base).ingress,
	}
}

// ingressDatabases is what the edge needs. Whoever takes it over can make sessions of citizens and clerks, and can send what
// is due again. It cannot change the registryRead, keys, staff, decisions, or what is known of payments.
func ingressDatabases() Databases {
	return Databases{Rows: rows(registryRead, record, deliveriesMade, sessionsRead,
		may("update(last_used_at)", "api_keys"), may("update", "registry_lock"),
		may("select insert update delete", "clerk_devices", "clerk_sessions"), // signed in at the counter
		may("select insert update", "tills"), may("select insert", "till_movements"),
		may("select insert delete", "cashin_tokens"), may("select insert update", "cashin_usage"),
		may("select insert delete update(session_id)", "personal_keys"), may("select", "audit"),
		// references and limits
		may("select insert update", "read_quota", "reference_counters", "unknown_references"),
		may("select insert update delete", "payment_prompts", "receipt_requests", "reference_lookups"),
		// citizens' accounts
		may("select insert update delete", "citizen_addresses", "citizen_links", "citizen_passkeys", "citizen_reminders", "citizen_sessions", "citizens",
			"known_browsers", "passkey_challenges", "sign_in_codes"),
		may("select insert update", "citizen_notices", "citizen_seen", "sign_in_requests", "subject_contacts"),
		may("select insert", "link_failures", "sign_in_failures"), may("insert", "link_renewals"), may("select", "link_code_epochs", "subject_epochs"),
		may("select update(sent_at)", "citizen_reminded"),
		// reports of providers of messages
		may("select insert update", "message_addresses"), may("select update(counted,reason,reported_at,state)", "message_reports"))}
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
	h, err := b.commands(ingressRole())
	if err != nil {
		return err
	}
	b.Run("commands probe", b.probe(h))
	b.readyWithNews()
	b.Run("identities", b.Identities.Run)
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
