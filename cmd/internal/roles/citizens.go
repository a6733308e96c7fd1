package roles

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/kafka/consume"
	messages "quittance/internal/notify"
	"quittance/internal/provider"
)

// The pauses of the parts below.
const (
	tellEvery  = 2 * time.Second
	stateEvery = 15 * time.Second
)

// citizenStore opens the accounts of citizens, for roles that need registry and reference key.
func (b *Base) citizenStore() (*citizens.Store, error) {
	return b.opened.accounts.open(func() (*citizens.Store, error) {
		refused := promauto.With(b.Metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_citizen_rows_refused_total", Help: "Times a row of a citizen's account opened nothing because none of our roles has written it, or somebody else has changed it, by table.",
		}, []string{"table"})
		for _, table := range append(citizens.ProvedTables(), "sign_in_failures") {
			refused.WithLabelValues(table)
		}
		return citizens.New(citizens.Config{
			Pool: b.Pool, Keys: b.Keys, Reference: b.References, Now: b.Now, SMSPerHour: b.SignInSMSPerHour, MailPerHour: b.SignInMailPerHour,
			Refused: func(ctx context.Context, table, row string) {
				refused.WithLabelValues(table).Inc()
				b.Log.LogAttrs(ctx, slog.LevelError, "a row of a citizen's account is not as our roles write it: it opens nothing", slog.String("table", table), slog.String("row", row))
			},
		})
	})
}

// LinkCodes returns the link codes of subjects of an agency, as it would print them on its
// notices, in the mode of the installation.
func (b *Base) LinkCodes(ctx context.Context, agencyID string, subjects []string) ([]string, error) {
	store, err := b.citizenStore()
	if err != nil {
		return nil, err
	}
	return store.LinkCodes(ctx, agencyID, !b.Developer(), subjects)
}

// tellCitizens sends what citizens are told about their accounts. Every instance may run it.
func (b *Base) tellCitizens() error {
	store, err := b.citizenStore()
	if err != nil {
		return err
	}
	sender, err := b.Messages()
	if err != nil {
		return err
	}
	send := func(ctx context.Context, n citizens.Notice) error {
		for i, to := range n.Addresses {
			if err := sender.Send(ctx, b.messageOf(n, i, to)); err != nil {
				return err
			}
		}
		return nil
	}
	b.Run("citizens' notices", func(ctx context.Context) error {
		for {
			if _, err := store.Tell(ctx, send); err != nil && ctx.Err() == nil {
				b.Log.LogAttrs(ctx, slog.LevelWarn, "citizens are not told about their accounts; it is tried again", slog.Any("error", err))
			}
			if !consume.Sleep(ctx, tellEvery) {
				return nil
			}
		}
	})
	return nil
}

// messageOf is the message with a notice to the i-th address of its account.
func (b *Base) messageOf(n citizens.Notice, i int, to contact.Address) messages.Message {
	m := messages.Message{
		Kind: messages.NewLink, Channel: provider.ChannelEmail, To: to.Text(), Locale: string(n.Locale),
		AgencyID: n.AgencyID, Live: n.Live, At: n.At,
	}
	if to.Kind == contact.Phone {
		m.Channel = provider.ChannelSMS
	}
	switch n.Kind {
	case citizens.NoticeNewLink:
		agency := "Administration" // one that the registry has no more
		if a, ok := b.Registry.Agency(n.AgencyID); ok {
			agency = a.Name
		}
		m.Variables = map[string]string{messages.VariableAgency: agency, messages.VariableSubject: n.Subject}
	case citizens.NoticeNewPasskey:
		m.Kind = messages.NewPasskey
	case citizens.NoticePasskeyRemoved:
		m.Kind = messages.PasskeyRemoved
	}
	m.ID = messages.MessageID(m.Kind, m.Channel, n.ID, strconv.Itoa(i))
	return m
}
