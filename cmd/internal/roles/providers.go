package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/citizens"
	"quittance/internal/clock"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/identity"
	messages "quittance/internal/notify"
	"quittance/internal/personal"
	"quittance/internal/provider"
	"quittance/internal/provider/all"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/sinks/erp"
	"quittance/sinks/notify"
)

// providerSecrets are the flags with the keys of the providers of messages.
var providerSecrets = []string{"sms-secret", "mail-secret"}

// channelFlags are the flags of the channels' providers.
var channelFlags = map[provider.Channel]string{provider.ChannelSMS: "sms", provider.ChannelEmail: "mail"}

// ProviderFlags declares the settings of the providers of messages.
func (s *Settings) ProviderFlags(f *pflag.FlagSet) {
	table := all.Providers()
	f.StringVar(&s.SMS, "sms", "", "provider of SMS (sink notify): "+table.Forms(provider.ChannelSMS))
	f.StringVar(&s.Mail, "mail", "", "mail server (sink notify): "+table.Forms(provider.ChannelEmail))
	f.StringVar(&s.SMSSecret, "sms-secret", "", "key of the provider of SMS (prefer --sms-secret-file or the environment)")
	f.StringVar(&s.MailSecret, "mail-secret", "", "password at the mail server (prefer --mail-secret-file or the environment)")
	for _, name := range providerSecrets {
		f.String(name+"-file", "", "file that holds the value of --"+name)
	}
}

// Accounts of the simulated providers.
const (
	simulatedSMS       = "/sms/infobip?sender=Quittance"
	simulatedSMSSecret = "simulator"
)

// OpenProviders makes the configured providers of messages. A channel without one is not in
// the map. With simulators SMS go to them unless a provider is configured.
func (s *Settings) OpenProviders(now func() time.Time) (map[provider.Channel]provider.Provider, error) {
	sms, smsSecret := s.SMS, s.SMSSecret
	if host, ok := strings.CutPrefix(s.SimulatorURL, "http://"); sms == "" && s.Simulators && ok {
		sms, smsSecret = "infobip+http://"+host+simulatedSMS, simulatedSMSSecret
	}
	out := map[provider.Channel]provider.Provider{}
	var errs []error
	for channel, of := range map[provider.Channel]struct{ address, secret string }{
		provider.ChannelSMS: {sms, smsSecret}, provider.ChannelEmail: {s.Mail, s.MailSecret},
	} {
		if of.address == "" {
			continue
		}
		p, err := all.Providers().Open(channel, of.address, provider.Settings{Secret: secret.NewText(of.secret), Plain: s.Loopback, Now: now})
		if err != nil {
			flag := channelFlags[channel]
			errs = append(errs, fmt.Errorf("--%s (the secret is --%s-secret or --%s-secret-file): %w", flag, flag, flag, err))
			continue
		}
		out[channel] = p
	}
	return out, errors.Join(errs...)
}

// withoutProvider describes a channel without a provider.
func withoutProvider(c provider.Channel) string {
	flag := channelFlags[c]
	return fmt.Sprintf("no provider of %s is configured: sign-in codes by %s are not sent; set --%s or %s", c, c, flag, Variable(flag))
}

// CheckProviders asks each provider of messages whether it accepts the credentials. found
// describes those that do, and warns of channels without one.
func (s *Settings) CheckProviders(ctx context.Context) (found string, err error) {
	opened, err := s.OpenProviders(clock.Now)
	if err != nil {
		return "", err
	}
	var well []string
	var errs []error
	for _, c := range provider.Channels {
		p := opened[c]
		if p == nil {
			well = append(well, "WARNING: "+withoutProvider(c))
			continue
		}
		if err := p.Check(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s (%s): %w; %s", c, p.Name(), err, mendOf(provider.Of(err).Fault, channelFlags[c])))
			continue
		}
		well = append(well, fmt.Sprintf("%s by %s, which accepts the credentials", c, p.Name()))
	}
	return strings.Join(well, "; "), errors.Join(errs...)
}

// mendOf says how to mend a fault of a provider's check.
func mendOf(f provider.Fault, flag string) string {
	if f == provider.FaultCredentials {
		return fmt.Sprintf("check the user in --%s and --%s-secret-file", flag, flag)
	}
	return fmt.Sprintf("check the host, the port and ca_file in --%s, and that this machine may connect to it", flag)
}

func (b *Base) notify() error {
	if err := b.checkPublicURL("checkout-url", b.CheckoutURL); err != nil {
		return err
	}
	callbacks := cmp.Or(b.CallbackURL, b.CheckoutURL)
	if err := b.checkPublicURL("callback-url", callbacks); err != nil {
		return err
	}
	texts, err := messages.NewTemplates(b.CheckoutURL)
	if err != nil {
		return fmt.Errorf("--checkout-url: %w", err)
	}
	providers, err := b.OpenProviders(b.Now)
	if err != nil {
		return err
	}
	for _, c := range provider.Channels {
		if providers[c] == nil {
			b.Log.LogAttrs(b.ctx, slog.LevelWarn, withoutProvider(c)) //nolint:sloglint // one text for start and doctor
		}
	}
	maker, err := b.papers()
	if err != nil {
		return err
	}
	read := sessions.NewStore(b.Pool)
	stored := func(ctx context.Context, id string) (checkout.Session, error) { return read.Stored(ctx, b.Codec, id) }
	policy, err := notify.NewPolicy(notify.Config{
		Codec: b.Codec, Personal: b.Personal, Templates: texts, Sends: messages.NewSends(b.Pool), Addresses: messages.NewAddresses(b.Pool), Reports: messages.NewReports(b.Pool), Papers: maker, Session: stored, Providers: providers, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		ReportURL: func(providerName, messageID string) string {
			return messages.ReportURL(b.Keys, callbacks, providerName, messageID)
		},
	})
	if err != nil {
		return err
	}
	b.Run("messages", policy.Run)
	if err := b.announce(); err != nil {
		return err
	}
	if err := b.remind(); err != nil {
		return err
	}
	if err := b.digest(); err != nil {
		return err
	}
	return b.deliver(notify.Kind, policy)
}

// remind reminds citizens who have chosen it of their dues.
func (b *Base) remind() error {
	accounts, err := b.citizenStore()
	if err != nil {
		return err
	}
	sender, err := b.Messages()
	if err != nil {
		return err
	}
	dues, err := b.Dues()
	if err != nil {
		return err
	}
	reader, err := b.sessionReader()
	if err != nil {
		return err
	}
	agency := func(id string) (string, bool) {
		a, ok := b.Registry.Agency(id)
		portal, has := b.Registry.PortalOf(id)
		return a.Name, ok && has && portal.Active
	}
	return add(b, "reminders", notify.NewReminders, notify.RemindersConfig{
		Accounts: accounts, Sender: sender, Dues: dues, Sessions: reader, Agency: agency, Live: !b.Developer(), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// digest tells staff what waits for them.
func (b *Base) digest() error {
	sender, err := b.Messages()
	if err != nil {
		return err
	}
	status := deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry))
	d, err := notify.NewDigester(notify.DigesterConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Digests: digests.NewStore(b.Pool), Awaiting: cases.NewStore(b.Pool).AwaitingApproval,
		Staff:       func(ctx context.Context) ([]identity.StaffEntry, error) { return identity.ListStaff(ctx, b.Pool) },
		FailingERPs: func(ctx context.Context) ([]deliveries.Failing, error) { return status.Failing(ctx, erp.Kind) },
		Registry:    b.Registry, Keys: b.Keys, Sender: sender, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	b.Run("digests of staff", d.Run)
	b.Run("answers of operators", d.RunCalls)
	return nil
}

// announce makes the messages about the money of sessions.
func (b *Base) announce() error {
	accounts, err := b.citizenStore()
	if err != nil {
		return err
	}
	sender, err := b.Messages()
	if err != nil {
		return err
	}
	agency := func(id string) (string, bool) {
		a, ok := b.Registry.Agency(id)
		return a.Name, ok
	}
	return add(b, "announcer", notify.NewAnnouncer, notify.AnnouncerConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Contacts: contacts{b.Personal, accounts}, Sender: sender, Agency: agency, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// contacts finds the people of sessions.
type contacts struct {
	*personal.Store
	accounts *citizens.Store
}

func (c contacts) Language(ctx context.Context, citizenID string) (money.Language, error) {
	return c.accounts.Language(ctx, citizenID)
}

// Messages returns the process's sender of messages to people, for roles that need registry
// and reference key.
func (b *Base) Messages() (*messages.Sender, error) {
	if b.messages != nil {
		return b.messages, nil
	}
	s, err := messages.NewSender(messages.SenderConfig{Kafka: b.KafkaConfig(), Codec: b.Codec, Personal: b.Personal, Addresses: messages.NewAddresses(b.Pool), Reference: b.References, Metrics: b.Metrics})
	if err == nil {
		b.messages, b.close = s, append(b.close, s.Close)
	}
	return s, err
}
