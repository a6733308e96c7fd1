package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/citizens"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/journal"
	messages "quittance/internal/notify"
	"quittance/internal/notify/payment"
	"quittance/internal/personal"
	"quittance/internal/provider"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/schemas"
	"quittance/sinks/erp"
	"quittance/sinks/notify"
)

func notifyRole() Role {
	return deliveryRole(notify.Kind, Role{
		Short: "sends messages to people: SMS and e-mail", Needs: []Need{NeedReferenceKey, NeedProviders, NeedDues}, Keys: notifyKeys(),
		Access: Access{
			Groups: []Group{{notify.AnnouncerGroup, []string{schemas.TopicEvents}}, {notify.DigesterGroup, []string{schemas.TopicCalls, schemas.TopicPayoutCalls}}, {notify.ClosesGroup, []string{schemas.TopicReconciliation}}, {notify.BatchesGroup, []string{schemas.Disbursement.Events}}},
			Writes: []string{schemas.TopicMessages},
		}.asksERPs(),
		Databases: Databases{Rows: rows(record,
			may("select", "audit", "case_proposals", "cases", "citizen_addresses", "citizen_links", "citizens", "disbursement_agencies", "disbursement_batches", "readmodel_positions", "sessions"),
			may("select insert update", "citizen_reminded", "operator_answers", "reminder_pace"), may("select update", "citizen_reminders"),
			may("select insert delete", "digest_windows"), may("select insert update delete", "digest_items", "digests", "message_addresses", "message_reports", "message_sends"),
			may("select delete", "personal_keys"))},
		Run: (*Base).notify,
	})
}

func (b *Base) notify() error {
	if err := b.checkPublicURL("checkout-url", b.CheckoutURL); err != nil {
		return err
	}
	callbacks := cmp.Or(b.CallbackURL, b.CheckoutURL)
	if err := b.checkPublicURL("callback-url", callbacks); err != nil {
		return err
	}
	if b.StaffURL == "" && b.Developer() && b.OfficeListen != "" {
		b.StaffURL = "http://" + b.OfficeListen
	}
	texts, err := messages.NewTemplates(b.CheckoutURL, b.StaffURL)
	if err != nil {
		return fmt.Errorf("--checkout-url or --staff-url: %w", err)
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
		Codec: b.Codec, Personal: b.Personal, Templates: texts, Sends: messages.NewSends(b.Pool),
		Addresses: messages.NewAddresses(b.Pool), Reports: messages.NewReports(b.Pool), Papers: maker,
		Session: stored, Providers: providers, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		ReportURL: func(providerName, messageID string) string {
			return messages.ReportURL(b.Keys, callbacks, providerName, messageID)
		},
	})
	if err != nil {
		return err
	}
	b.Run("messages", policy.Run)
	accounts, err := b.citizenStore()
	if err != nil {
		return err
	}
	sender, err := b.Messages()
	if err != nil {
		return err
	}
	return errors.Join(b.announce(accounts, sender), b.remind(accounts, sender), b.digest(sender), b.deliver(notify.Kind, policy))
}

// remind reminds citizens who have chosen it of their dues.
func (b *Base) remind(accounts *citizens.Store, sender *messages.Sender) error {
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
		Accounts: accounts, Sender: sender, Dues: dues, Sessions: reader, Agency: agency,
		Live: !b.Developer(), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// digest tells staff what waits for them.
func (b *Base) digest(sender *messages.Sender) error {
	status := deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry))
	d, err := notify.NewDigester(notify.DigesterConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Digests: digests.NewStore(b.Pool), Awaiting: cases.NewStore(b.Pool).Verifying(b.Keys).AwaitingApproval,
		Staff:       b.listStaff,
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

// listStaff lists all staff.
func (b *Base) listStaff(ctx context.Context) ([]identity.StaffEntry, error) {
	return identity.ListStaff(ctx, b.Pool, b.Registry.Verifier())
}

// announce makes the messages about the money of sessions, about closes and about batches.
func (b *Base) announce(accounts *citizens.Store, sender *messages.Sender) error {
	agency := func(id string) (payment.Agency, bool) {
		a, ok := b.Registry.Agency(id)
		return payment.Agency{Name: a.Name, Address: a.Address, Phone: a.Contact.Phone, Email: a.Contact.Email, Hours: a.Contact.Hours, Locked: a.Locked}, ok
	}
	if err := add(b, "closes", notify.NewCloses, notify.ClosesConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Sender: sender, Keys: b.Keys.PublicKeys(journal.LabelCloses), Agency: agency, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	}); err != nil {
		return err
	}
	if err := add(b, "notices of batches", notify.NewBatches, notify.BatchesConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Store: disbursements.NewStore(b.Pool, b.Codec), Staff: b.listStaff, Keys: b.Keys,
		Sender: sender, Agency: agency, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	}); err != nil {
		return err
	}
	return add(b, "announcer", notify.NewAnnouncer, notify.AnnouncerConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Contacts: contacts{b.Personal, accounts}, Sender: sender,
		Agency: agency, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
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
	return b.opened.messages.open(func() (*messages.Sender, error) {
		s, err := messages.NewSender(messages.SenderConfig{
			Kafka: b.KafkaConfig(), Codec: b.Codec, Personal: b.Personal, Addresses: messages.NewAddresses(b.Pool),
			Reference: b.References, Metrics: b.Metrics,
		})
		if err == nil {
			b.close = append(b.close, s.Close)
		}
		return s, err
	})
}
