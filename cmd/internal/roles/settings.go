package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"quittance/ingress/staff"
	"quittance/internal/citizens"
	"quittance/internal/clock"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/secret"
	"quittance/internal/transport"
	"quittance/schemas"
)

// Settings are the values of flags and environment variables (flag --a-b or variable
// QUITTANCE_A_B; the flag has precedence), and the options of the program.
type Settings struct {
	Options
	// Program is the name of the program, for hints.
	Program string
	// AddressHint is appended to the error about missing addresses.
	AddressHint string

	Data        string
	Kafka       string
	TopicPrefix string
	Partitions  int32 // of new topics; 0 when not given
	Replication int16 // of new topics; 0 when not given
	// AcceptOneReplica accepts topics with fewer replicas than schemas.Replicas.
	AcceptOneReplica bool
	// AcceptMasterKeys lets a role hold the master keys in production, not only its own keys.
	AcceptMasterKeys bool
	// AcceptUnsignedCommands lets a processor decide commands that do not prove who sent them.
	AcceptUnsignedCommands bool
	// AcceptUnprovenBodies lets the sinks webhook, cashin and erp send bodies that nothing proves to be the
	// processor's, and the sinks schedule, journal and erp believe outcomes that nothing proves to be a worker's.
	AcceptUnprovenBodies bool
	Postgres             string
	ClickHouse           string
	SchemaRegistry       string
	secure               connectionSecurity
	MasterKeys           string
	ReferenceKey         string
	LogLevel             string

	Listen string
	// OfficeListen is where the role office listens, and StaffURL is where staff reach it.
	OfficeListen, StaffURL string
	// DemoStaff makes the demo people of the staff pages. It is nil in production: a program of developers sets it.
	DemoStaff func(*Base, *identity.Desk) staff.Demo
	Health    string
	// Drain is how long a server answers on after the signal to stop.
	Drain       time.Duration
	CheckoutURL string
	CallbackURL string
	// TrustedProxies are the networks of the proxies that name the client in
	// X-Forwarded-For.
	TrustedProxies []net.IPNet
	// MaxConnections is the most open connections of the ingress.
	MaxConnections int
	// KeylessPerClient and KeylessPerInstance are the calls without a key that the ingress
	// admits in a second, from one client and in all.
	KeylessPerClient, KeylessPerInstance float64
	// CloseKeys is a file with public keys of closes, of master keys that are gone.
	CloseKeys string
	// SignInSMSPerHour is the most sign-in codes by SMS that the whole service sends in an hour.
	SignInSMSPerHour int
	// SignInMailPerHour is the most sign-in codes by e-mail that it sends in an hour.
	SignInMailPerHour int
	SimulatorURL      string
	// Origins replaces origins of the registry, those of embedding sites and of cash-in
	// partners: the new origin by the old one.
	Origins map[string]string

	// SMS and Mail are the addresses of the providers of messages to people, and SMSSecret and
	// MailSecret their keys. The forms of the addresses are the providers' own.
	SMS, SMSSecret, Mail, MailSecret string

	Instance string
	// Nonce is appended to transactional ids. It is empty in production: a restart must
	// use the same ids, to abort the transactions that it left open.
	Nonce string
	Store string
}

// ConnectionFlags declares the settings that name the parts of an installation.
func (s *Settings) ConnectionFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Data, "data", ".quittance", "data folder")
	f.StringVar(&s.Kafka, "kafka", "", "addresses of the Kafka brokers, host:port,…")
	f.StringVar(&s.TopicPrefix, "topic-prefix", "", "prefix of topics and groups, different for each installation on one broker")
	f.StringVar(&s.Postgres, "postgres", "", "address of Postgres, postgres://user:password@host:port/database?sslmode=verify-full")
	f.StringVar(&s.ClickHouse, "clickhouse", "", "address of ClickHouse, https://host:port/database or clickhouse://…?secure=true")
	f.StringVar(&s.SchemaRegistry, "schema-registry", "", "address of the schema registry, https://host:port")
	s.securityFlags(f)
	f.StringVar(&s.MasterKeys, "master-keys", "", "keys of the role, as 'secrets derive' prints them; for other commands the master keys, id:base64[:open],… newest first (prefer --master-keys-file or the environment)")
	f.StringVar(&s.ReferenceKey, "reference-key", "", "key of references and ids, 32 bytes in base64; it never changes (prefer --reference-key-file or the environment)")
	for _, name := range secretFlags {
		if !slices.Contains(providerSecrets, name) {
			f.String(name+"-file", "", "file that holds the value of --"+name)
		}
	}
	if s.Simulators {
		f.StringVar(&s.SimulatorURL, "simulator-url", "", "address of the simulators, http://host:port")
	}
	f.StringVar(&s.LogLevel, "log", "info", "log level: debug, info, warn, error")
}

// RunFlags declares the settings of roles of a kind.
func (s *Settings) RunFlags(f *pflag.FlagSet, kind Kind) {
	s.RiskFlags(f)
	f.BoolVar(&s.AcceptMasterKeys, "accept-master-keys", false, "run although the process holds the master keys: whoever takes it then opens every secret of the service")
	f.StringVar(&s.Health, "health", "", "address of /healthz, /readyz and /metrics, host:port; empty for none")
	if kind != KindProcessor {
		f.StringVar(&s.Instance, "instance", "0", "name of this instance of the role")
	}
	switch kind {
	case KindIngress:
		f.StringVar(&s.Listen, "listen", "127.0.0.1:8080", "address to listen on, host:port")
		publicURLVar(f, &s.CheckoutURL, "checkout-url", "", "URL of the checkout pages for citizens, https")
		f.StringVar(&s.CallbackURL, "callback-url", "", "URL at which operators and providers of SMS reach /callbacks; the checkout URL when empty")
		f.IPNetSliceVar(&s.TrustedProxies, "trusted-proxies", nil, "networks of the proxies in front, such as 10.0.0.0/8,fd00::/8: they name the client in X-Forwarded-For, by which limits count and operators are known")
		f.IntVar(&s.MaxConnections, "max-connections", DefaultMaxConnections, "open connections at the same time; further ones wait")
		f.Float64Var(&s.KeylessPerClient, "keyless-per-client", DefaultKeylessPerClient, "calls of pages, of operators' reports and of the deprecated cash-in API that one client may make in a second; a client is an IPv4 address or a /64 of IPv6; its /24 or /48 may make a tenth of --keyless-per-instance, its /16 or /32 a quarter")
		f.Float64Var(&s.KeylessPerInstance, "keyless-per-instance", DefaultKeylessPerInstance, "the same calls from all clients of this instance in a second")
		s.signInFlag(f, "")
		f.DurationVar(&s.Drain, "drain", defaultDrain, "how long the ingress answers on after SIGTERM, unready, until balancers have moved on; at most 10s")
	case KindOffice:
		f.StringVar(&s.OfficeListen, "listen", "127.0.0.1:8091", "address to listen on, host:port")
		publicURLVar(f, &s.StaffURL, "staff-url", "", "URL at which staff reach the pages, https; its host is not that of the checkout pages, and passkeys are bound to it")
		publicURLVar(f, &s.CheckoutURL, "checkout-url", "", "URL of the checkout pages for citizens, https, where the codes of certificates and payment advices lead; they have no code when empty")
		f.IPNetSliceVar(&s.TrustedProxies, "trusted-proxies", nil, "networks of the proxies in front, such as 10.0.0.0/8,fd00::/8: they name the client in X-Forwarded-For, by which limits count")
		f.DurationVar(&s.Drain, "drain", defaultDrain, "how long the pages are answered on after SIGTERM, unready, until balancers have moved on; at most 10s")
	case KindProcessor:
		s.StoreFlags(f)
		f.BoolVar(&s.AcceptUnsignedCommands, "accept-unsigned-commands", false, "decide commands that do not prove who sent them, while senders of a release before 2026-11-29 run: whoever may write the topic of commands can then make any payment paid")
	case KindSink:
		service := ""
		if s.Developer() {
			service = "http://127.0.0.1:8080"
		}
		f.StringVar(&s.CallbackURL, "callback-url", service, "URL at which operators and providers of SMS reach /callbacks, https (sink collect; sink notify, where it is the checkout URL when empty)")
		publicURLVar(f, &s.CheckoutURL, "checkout-url", service, "URL of the checkout pages for citizens, https (sink collect, sink notify)")
		publicURLVar(f, &s.StaffURL, "staff-url", "", "URL at which staff reach the pages, https, to which messages to them lead; they have no link when empty (sink notify)")
		s.signInFlag(f, " (sink tidy)")
		f.StringVar(&s.CloseKeys, "close-keys", "", "file with the public keys of master keys that are gone, as periods keys printed them: closes that they signed are verified each night (sink match)")
		f.BoolVar(&s.AcceptUnprovenBodies, "accept-unproven-bodies", false, "send webhooks and confirmations that nothing proves to be the processor's, while those of a release before 2026-11-29 wait (sinks webhook, cashin and erp), and believe outcomes of deliveries that nothing proves to be their worker's (sinks schedule, journal and erp): whoever may write their topics can then have any body signed and sent, and call any delivery accepted")
		s.ProviderFlags(f)
	}
}

func (s *Settings) signInFlag(f *pflag.FlagSet, of string) {
	f.IntVar(&s.SignInSMSPerHour, "sign-in-sms-per-hour", DefaultSignInSMSPerHour, "sign-in codes by SMS that all instances together send in an hour at most, the same for all roles; further ones go by e-mail only"+of)
	f.IntVar(&s.SignInMailPerHour, "sign-in-mail-per-hour", DefaultSignInMailPerHour, "sign-in codes by e-mail that all instances together send in an hour at most, the same for all roles"+of)
}

// signInCodes returns the settings of codes by SMS and by e-mail, if they can be used.
func (s *Settings) signInCodes() (smsPerHour, mailPerHour int, err error) {
	switch {
	case s.SignInSMSPerHour < 1:
		return 0, 0, fmt.Errorf("--sign-in-sms-per-hour is %d: it must be at least 1", s.SignInSMSPerHour)
	case s.SignInMailPerHour < 1:
		return 0, 0, fmt.Errorf("--sign-in-mail-per-hour is %d: it must be at least 1", s.SignInMailPerHour)
	}
	return s.SignInSMSPerHour, s.SignInMailPerHour, nil
}

// StoreFlags declares the settings that name the local stores of a processor's instance. In production
// the instance has no default, see CheckInstance.
func (s *Settings) StoreFlags(f *pflag.FlagSet) {
	instance := ""
	if s.Developer() {
		instance = "0"
	}
	f.StringVar(&s.Instance, "instance", instance, "name of this instance of the processor; it must stay the same over restarts")
	s.storeFlag(f)
}

// CheckInstance refuses a processor without a name of its own: two of the same name fence each other off
// for ever, and one that gets another name restores its stores anew.
func (s *Settings) CheckInstance() error {
	if s.Instance == "" {
		return fmt.Errorf("%w: --instance (or %s), the name of this instance of the processor, which no other one has and which stays the same over restarts, such as 0", ErrSettings, Variable("instance"))
	}
	return nil
}

func (s *Settings) storeFlag(f *pflag.FlagSet) {
	f.StringVar(&s.Store, "store", "", "folder of this instance's local stores; <data>/store-<name>-<instance> when empty, without the name for checkout")
}

// RiskFlags declares the flags that accept a risk which production refuses otherwise.
func (s *Settings) RiskFlags(f *pflag.FlagSet) {
	f.BoolVar(&s.AcceptOneReplica, "accept-one-replica", false, "run although topics have fewer than three replicas: one lost disk then loses payments")
}

// DefaultMaxConnections of an ingress. Its pages have up to 10,000 viewers.
const DefaultMaxConnections = 16_384

// Defaults of the limits of calls without a key. Mobile operators send many phones through
// one IPv4 address.
const (
	DefaultKeylessPerClient   = 100
	DefaultKeylessPerInstance = 2000
)

// DefaultSignInSMSPerHour is the most sign-in codes by SMS in an hour.
const DefaultSignInSMSPerHour = citizens.DefaultSMSPerHour

// DefaultSignInMailPerHour is the most sign-in codes by e-mail in an hour.
const DefaultSignInMailPerHour = citizens.DefaultMailPerHour

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	return "QUITTANCE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// serviceLink is the value of NAME_PORT that Kubernetes gives to the pods beside a service
// of that name.
var serviceLink = regexp.MustCompile(`^(tcp|udp|sctp)://`)

// FromEnvironment is FromVariables with the variables of this process.
func FromEnvironment(f *pflag.FlagSet) error { return FromVariables(f, os.LookupEnv) }

// FromVariables sets the flags that the command line does not set from their environment
// variables, and secrets from their files. It ignores the QUITTANCE_PORT of Kubernetes, which
// names the address of a service that is called quittance.
func FromVariables(f *pflag.FlagSet, lookup func(name string) (value string, ok bool)) error {
	var errs []error
	f.VisitAll(func(fl *pflag.Flag) {
		if v, ok := lookup(Variable(fl.Name)); ok && !fl.Changed && !(fl.Name == "port" && serviceLink.MatchString(v)) {
			if err := f.Set(fl.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s: %q is not a value of --%s", Variable(fl.Name), v, fl.Name))
			}
		}
	})
	for _, name := range secretFlags {
		if err := fromFile(f, name); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// serviceVariable is the name of a variable that Kubernetes gives to the pods beside a service whose
// name begins with quittance.
var serviceVariable = regexp.MustCompile(`^QUITTANCE_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// UnknownVariables returns the names of the QUITTANCE_… variables among NAME=VALUE pairs that are
// none of known, sorted. Those that Kubernetes makes for services, and empty ones, are left out.
func UnknownVariables(environ []string, known func(name string) bool) []string {
	var out []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		link := serviceVariable.MatchString(name) || strings.HasSuffix(name, "_PORT") && serviceLink.MatchString(value)
		if strings.HasPrefix(name, "QUITTANCE_") && value != "" && !link && !known(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// secretFlags can have a secret as their value. Each has a flag NAME-file.
var secretFlags = append([]string{"master-keys", "reference-key", "kafka-password", "postgres", "clickhouse", "schema-registry"}, providerSecrets...)

// wholeSecrets are those of secretFlags whose value is a secret. The others are addresses,
// which may have a password.
var wholeSecrets = append([]string{"master-keys", "reference-key", "kafka-password"}, providerSecrets...)

// fromFile sets a flag to the content of the file that its flag NAME-file names.
func fromFile(f *pflag.FlagSet, name string) error {
	fl, file := f.Lookup(name), f.Lookup(name+"-file")
	if fl == nil || file == nil || file.Value.String() == "" {
		return nil
	}
	if fl.Changed {
		return fmt.Errorf("--%s and --%s-file are both set; keep one (also as %s or %s)", name, name, Variable(name), Variable(name+"-file"))
	}
	text, err := os.ReadFile(file.Value.String())
	if err != nil {
		return fmt.Errorf("--%s-file: %w", name, err)
	}
	value := strings.TrimSpace(string(text))
	if value == "" {
		return fmt.Errorf("--%s-file: %s is empty", name, file.Value)
	}
	if err := f.Set(name, value); err != nil {
		return fmt.Errorf("--%s-file: %s has no value of --%s", name, file.Value, name)
	}
	return nil
}

// SecretsInArguments returns the flags that have a secret on the command line, where every
// user of the machine can read it. Call it before FromEnvironment.
func SecretsInArguments(f *pflag.FlagSet) []string {
	var out []string
	for _, name := range secretFlags {
		fl := f.Lookup(name)
		if fl == nil || !fl.Changed {
			continue
		}
		if !slices.Contains(wholeSecrets, name) {
			u, err := url.Parse(fl.Value.String())
			if err != nil {
				continue
			}
			if _, secret := u.User.Password(); !secret && !u.Query().Has("password") {
				continue
			}
		}
		out = append(out, name)
	}
	return out
}

// ErrSettings means that required settings are missing.
var ErrSettings = errors.New("not set")

// Need returns an error that names the addresses that are not set, among kafka,
// postgres, clickhouse and schema-registry.
func (s *Settings) Need(names ...string) error {
	values := map[string]string{
		"kafka": s.Kafka, "postgres": s.Postgres, "clickhouse": s.ClickHouse, "schema-registry": s.SchemaRegistry,
	}
	var missing []string
	for _, n := range names {
		if values[n] == "" {
			missing = append(missing, fmt.Sprintf("--%s (or %s)", n, Variable(n)))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s%s", ErrSettings, strings.Join(missing, ", "), s.AddressHint)
	}
	return nil
}

// publicURLVar declares the address of the service. Its scheme and host are kept in lower case, as
// browsers send them in Origin: passkeys and forms compare the two.
func publicURLVar(f *pflag.FlagSet, at *string, name, value, usage string) {
	*at = value
	f.VarPF((*publicURL)(at), name, "", usage)
}

// publicURL is the address of the service as a value of a flag.
type publicURL string

// String returns the address.
func (p *publicURL) String() string { return string(*p) }

// Type names the value in the help.
func (*publicURL) Type() string { return "string" }

// Set takes an address. One that is malformed is refused later, with the name of its flag.
func (p *publicURL) Set(text string) error {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		u.Host = strings.ToLower(u.Host)
		text = u.String()
	}
	*p = publicURL(text)
	return nil
}

// checkPublicURL refuses an address to which citizens and operators would send secrets in
// plain text. Developers' installations may have one.
func (s *Settings) checkPublicURL(flag, value string) error {
	if s.Developer() {
		return nil
	}
	u, err := url.Parse(value)
	switch {
	case value == "":
		return fmt.Errorf("%w: --%s (or %s), the https address of the service, such as https://pay.example", ErrSettings, flag, Variable(flag))
	case err != nil || u.Host == "":
		return fmt.Errorf("--%s: must be an https address, such as https://pay.example", flag)
	case u.Scheme != "https":
		return fmt.Errorf("--%s %s: must be https, as citizens and operators send phone numbers and secrets there; put a proxy with TLS in front, deploy/proxy has examples", flag, u.Redacted())
	}
	return nil
}

// KafkaConfig returns how to reach the broker, and how to make topics.
func (s *Settings) KafkaConfig() kafka.Config {
	cfg := kafka.Config{
		Brokers: strings.Split(s.Kafka, ","), Security: s.secure.kafka, Prefix: s.TopicPrefix, Replication: s.Replication, Partitions: s.Partitions, PartitionsRequired: !s.Developer(),
	}
	if cfg.Replication == 0 && !s.AcceptsOneReplica() {
		cfg.Replication = schemas.Replicas
	}
	return cfg
}

// AcceptsOneReplica reports whether topics may have fewer replicas than schemas.Replicas.
func (s *Settings) AcceptsOneReplica() bool { return s.AcceptOneReplica || s.Developer() }

// OpenSchemas returns a codec for the schemas of the schema registry. With register it
// registers missing schemas; otherwise a missing one is an error.
func (s *Settings) OpenSchemas(ctx context.Context, register bool) (*schemas.Codec, error) {
	via := transport.HTTP(&net.Dialer{})
	via.Proxy, via.TLSClientConfig = http.ProxyFromEnvironment, s.secure.registry
	client, err := schemas.NewClient(s.SchemaRegistry, via)
	if err != nil {
		return nil, err
	}
	return schemas.NewCodec(ctx, client, register)
}

// errPending says that this program needs migrations that the database lacks.
var errPending = errors.New("migrations are pending in Postgres")

// OpenPostgres opens the database. Pending migrations are an error.
func (s *Settings) OpenPostgres(ctx context.Context) (*postgres.Pool, error) {
	if err := s.Need("postgres"); err != nil {
		return nil, err
	}
	// Most rows of the audit table are written long after the pool was opened, and many processes write none.
	signer := sync.OnceValue(func() operation.Signer {
		if keys, err := s.OpenKeys(); err == nil {
			return keys
		}
		return nil // the relay tells of unsigned rows
	})
	pool, err := postgres.Open(ctx, s.Postgres, operation.SignedBy(signer))
	if err != nil {
		return nil, err
	}
	n, err := postgres.Pending(ctx, pool)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d %w; run `%s migrate`", n, errPending, s.Program)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// MachineTime returns the machine's time at a time of the service. Records in Kafka have the
// machine's time.
type MachineTime func(ctx context.Context, at time.Time) (time.Time, error)

// sameTime is the MachineTime of a service whose clock is the machine's.
func sameTime(_ context.Context, at time.Time) (time.Time, error) { return at, nil }

// Time returns the service's present time, for a command, and how to find the machine's.
func (s *Settings) Time(ctx context.Context, pool *postgres.Pool) (now time.Time, machine MachineTime, err error) {
	if s.Options.Clock == nil {
		return clock.Now(), sameTime, nil
	}
	moved, err := s.Options.Clock(ctx, pool, slog.New(slog.DiscardHandler))
	if err != nil {
		return time.Time{}, nil, err
	}
	return moved.Now(), moved.Machine, nil
}

// OpenKeys returns the configured master keys. If none are configured and plain secrets
// are allowed, it reads them from the data folder, or makes them there.
func (s *Settings) OpenKeys() (*secret.Keys, error) {
	if s.MasterKeys != "" {
		return secret.ParseKeys(s.MasterKeys)
	}
	if !s.PlainSecrets {
		return nil, errors.New("QUITTANCE_MASTER_KEYS is not set: make a key with `head -c 32 /dev/urandom | base64` and set QUITTANCE_MASTER_KEYS=1:<key>; every role gets its own keys of them with `quittance secrets derive ROLE`; keep them as safe as the backups of the database")
	}
	text, err := s.developerSecret("master.keys", func() string { return secret.GenerateKeys().Reveal() })
	if err != nil {
		return nil, fmt.Errorf("the developer's master keys: %w", err)
	}
	return secret.ParseKeys(text)
}

// OpenReferenceKey returns the configured reference key. If none is configured and plain
// secrets are allowed, it reads it from the data folder, or makes it there.
func (s *Settings) OpenReferenceKey() (*secret.ReferenceKey, error) {
	text := s.ReferenceKey
	if text == "" {
		if !s.PlainSecrets {
			return nil, errors.New("QUITTANCE_REFERENCE_KEY is not set: make it with `quittance secrets reference-key` and set it, the same for ingress, sink notify, links and erase; it never changes, so keep it as safe as the backups of the database")
		}
		var err error
		if text, err = s.developerSecret("reference.key", s.newReferenceKey); err != nil {
			return nil, fmt.Errorf("the developer's reference key: %w", err)
		}
	}
	return secret.ParseReferenceKey(text)
}

// newReferenceKey makes a developer's reference key. It carries the permutation of the
// master keys, with which an earlier release made the numbers of the same data folder.
func (s *Settings) newReferenceKey() string {
	key := secret.GenerateReferenceKey()
	if keys, err := s.OpenKeys(); err == nil && keys.Role() == "" {
		key = key.Carrying(keys.FormerPermutations()[0])
	}
	return key.Reveal()
}

// developerSecret returns the content of a file in the data folder. It makes a missing
// file. Processes that start at the same time get the same content.
func (s *Settings) developerSecret(name string, generate func() string) (string, error) {
	file := filepath.Join(s.Data, name)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.makeSecret(file, generate()); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}

// makeSecret makes a whole file at once. The error is fs.ErrExist if there is one.
func (s *Settings) makeSecret(file, text string) (err error) {
	if err := os.MkdirAll(s.Data, 0o755); err != nil { //nolint:gosec // Postgres, which runs as another user, has its folder inside
		return err
	}
	f, err := os.CreateTemp(s.Data, filepath.Base(file)+".*") // readable by us alone
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(text + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), file)
}

// Logger returns a logger of the level --log that writes text to out.
func (s *Settings) Logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log %q: must be debug, info, warn or error", s.LogLevel)
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})), nil
}

// Developer reports whether the program allows anything that production does not.
func (o Options) Developer() bool {
	return o.Loopback || o.PlainSecrets || o.Clock != nil || o.Simulators || o.Profiles
}

// print logs the settings at start, without secrets.
func (s *Settings) print(log *slog.Logger) {
	log.Info("configuration",
		slog.Bool("developer", s.Developer()), slog.String("kafka", s.Kafka), slog.String("topic_prefix", s.TopicPrefix),
		slog.String("postgres", WithoutPassword(s.Postgres)), slog.String("clickhouse", WithoutPassword(s.ClickHouse)),
		slog.String("schema_registry", WithoutPassword(s.SchemaRegistry)), slog.String("master_keys", s.MasterKeysState()), slog.String("reference_key", s.ReferenceKeyState()),
		slog.String("instance", s.Instance), slog.String("listen", s.Listen), slog.String("health", s.Health),
		slog.String("sms", WithoutPassword(s.SMS)), slog.String("sms_secret", secret.NewText(s.SMSSecret).String()),
		slog.String("mail", WithoutPassword(s.Mail)), slog.String("mail_secret", secret.NewText(s.MailSecret).String()))
	if s.AcceptMasterKeys && !s.Developer() {
		log.Warn("the process may hold the master keys (--accept-master-keys): whoever takes it then opens every secret of the service")
	}
	if s.AcceptOneReplica && !s.Developer() {
		log.Warn("topics may have fewer than three replicas (--accept-one-replica): one lost disk then loses payments")
	}
	if s.AcceptUnsignedCommands {
		log.Warn("whoever may write the topic of commands can make any payment paid (--accept-unsigned-commands): set it only while senders of an earlier release run")
	}
	if s.AcceptUnprovenBodies {
		log.Warn("whoever may write the topics of deliveries can have any body signed and sent, and call any delivery accepted (--accept-unproven-bodies): set it only while deliveries of an earlier release wait")
	}
	for _, c := range s.Connections() {
		log.Info("connection", slog.String("to", c.Flag), slog.String("protection", c.How))
		if c.Exposed && !s.Developer() {
			log.Warn("whoever controls the network reads and changes payments (--allow-plaintext)", slog.String("connection", c.Flag), slog.String("protection", c.How))
		}
	}
	if s.Developer() {
		log.Warn("developer mode: loopback destinations and plain secrets are allowed, and the clock can be moved; never use it for real payments")
	}
}

// WithoutPassword returns an address without its password and its query.
func WithoutPassword(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" { // such as the words of a DSN, host=… password=…
		return "configured"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// MasterKeysState describes where the keys come from, and whose they are. It does not show them.
func (s *Settings) MasterKeysState() string {
	state := s.secretState(s.MasterKeys)
	if keys, err := secret.ParseKeys(s.MasterKeys); err == nil && keys.Role() != "" {
		state += ", keys of the role " + keys.Role()
	}
	return state
}

// ReferenceKeyState describes where the reference key comes from. It does not show it.
func (s *Settings) ReferenceKeyState() string { return s.secretState(s.ReferenceKey) }

func (s *Settings) secretState(value string) string {
	switch {
	case value != "":
		return "configured"
	case s.PlainSecrets:
		return "made in the data folder"
	}
	return "not configured"
}
