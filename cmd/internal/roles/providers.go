package roles

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/internal/clock"
	"quittance/internal/provider"
	"quittance/internal/provider/all"
	"quittance/internal/secret"
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
