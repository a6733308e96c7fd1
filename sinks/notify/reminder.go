package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/erp"
	"quittance/internal/kafka/consume"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/money"
	"quittance/money/language"
	"quittance/money/localtime"
)

// The hours of Brazzaville at which reminders are sent. None is made in the last half hour, so
// that a message has some time to be sent.
const (
	remindFrom  = 8 * time.Hour
	remindMake  = 19*time.Hour + 30*time.Minute
	remindUntil = 20 * time.Hour
)

const (
	// remindAtOnce is how many accounts an instance looks at at the same time.
	remindAtOnce = 8
	// remindLease is how long an account is one instance's, and remindWithin the shorter time
	// after which the instance stops.
	remindLease  = 5 * time.Minute
	remindWithin = 4 * time.Minute
	// remindAgain is the pause before an account is looked at again whose dues are not all known,
	// and remindSoon where only our own parts were away or the ERP is asked too often.
	remindAgain = 30 * time.Minute
	remindSoon  = time.Minute
	// erpRests is how long an ERP that did not answer is not asked about reminders.
	erpRests = 5 * time.Minute
	// paceAtMost is the longest wait for the turn of a question to an ERP.
	paceAtMost = 10 * time.Second
)

// Lengths of the parts of reminders.
const (
	listedDues  = 20 // in an e-mail
	listedText  = 80 // characters of a label or an agency
	agencyInSMS = 32 // characters of an agency
)

// RemindersConfig configures Reminders. Fields without a default are required.
type RemindersConfig struct {
	Accounts *citizens.Store
	Sender   Sender
	// Dues asks the agencies' ERPs: erp.Dues.
	Dues interface {
		Fresh(ctx context.Context, agencyID string, live bool, subjectRef string) (erp.Answer, error)
	}
	// Sessions says which dues are being paid, or were just paid: sessions.Reader.
	Sessions interface {
		Claimants(ctx context.Context, agencyID string, live bool, refs []string) ([]checkout.Session, error)
	}
	// Agency returns the name of an agency; false for one without an active citizen portal.
	Agency func(id string) (name string, ok bool)
	// Live is the mode of the installation's portals.
	Live bool
	// Pause is the time between two looks for accounts; 15 s when zero.
	Pause time.Duration
	// Gap is the least time between two questions to an agency's ERP, over all instances; half
	// a second when zero.
	Gap     time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Reminders reminds citizens who have chosen it of dues, a week and a day before their due date.
//
//	8:00 ──► an account with reminders ──► its agencies' ERPs ──► citizens.Store.Write ──► Sender
//
// Each account is looked at once a day. What its dues are, the ERPs say at that moment: nothing
// is kept, so nobody is reminded of what an old answer said. While an ERP is away, or a due is in
// payment, the account is looked at again later the same day. An account gets one message of a due,
// its date and a stage, ever. Any number of instances share the work.
type Reminders struct {
	cfg    RemindersConfig
	checks *prometheus.CounterVec // outcome
	dues   *prometheus.CounterVec // outcome
	waits  prometheus.Gauge

	mu sync.Mutex
	// rests are the ERPs that did not answer, by agency, and until when they are not asked.
	rests map[string]time.Time
}

// Outcomes of looking at an account.
const (
	checkDone       = "done"
	checkIncomplete = "incomplete" // an ERP is away, or a due is in payment: later again
	checkPaced      = "paced"      // the ERP has been asked often enough for now
	checkLost       = "lost"       // the choice has changed, or another instance has the account
	checkFailed     = "failed"     // Postgres, Kafka or the read model is away
)

// Outcomes of a due near its date.
const (
	dueReminded    = "reminded"
	dueInPayment   = "in_payment"
	dueRecording   = "recording"   // paid here
	dueUnreachable = "unreachable" // the message was refused
)

// NewReminders makes Reminders.
func NewReminders(cfg RemindersConfig) (*Reminders, error) {
	if cfg.Accounts == nil || cfg.Sender == nil || cfg.Dues == nil || cfg.Sessions == nil || cfg.Agency == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("reminders: Accounts, Sender, Dues, Sessions, Agency, Now, Log and Metrics are required")
	}
	cfg.Pause, cfg.Gap = cmp.Or(cfg.Pause, 15*time.Second), cmp.Or(cfg.Gap, 500*time.Millisecond)
	with := promauto.With(cfg.Metrics)
	r := &Reminders{
		cfg: cfg, rests: map[string]time.Time{},
		checks: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_reminder_checks_total", Help: "Accounts with reminders that were looked at, by outcome: done, incomplete (an ERP is away or a due is in payment; later again), paced, lost, failed.",
		}, []string{"outcome"}),
		dues: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_reminder_dues_total", Help: "Dues of accounts with reminders that were near their date, by outcome: reminded, in_payment, recording (paid here), unreachable (the message was refused).",
		}, []string{"outcome"}),
		waits: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_reminders_wait_seconds", Help: "How long the account with reminders waits that was to be looked at first; 0 outside the hours of reminders. Every instance reports the same.",
		}),
	}
	for _, o := range []string{checkDone, checkIncomplete, checkPaced, checkLost, checkFailed} {
		r.checks.WithLabelValues(o)
	}
	for _, o := range []string{dueReminded, dueInPayment, dueRecording, dueUnreachable} {
		r.dues.WithLabelValues(o)
	}
	return r, nil
}

// Run reminds until ctx ends, then returns nil.
func (r *Reminders) Run(ctx context.Context) error {
	for {
		looked, err := r.round(ctx)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "citizens are not reminded; it is tried again", slog.Any("error", err))
		}
		if looked == remindAtOnce && err == nil && ctx.Err() == nil {
			continue
		}
		if !consume.Sleep(ctx, r.cfg.Pause) {
			return nil
		}
	}
}

// day is a day of Brazzaville.
type day struct{ midnight time.Time }

func dayOf(t time.Time) day {
	t = localtime.In(t)
	return day{time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())}
}

func (d day) at(since time.Duration) time.Time { return d.midnight.Add(since) }

// makes reports whether reminders may be made at a moment of the day.
func (d day) makes(t time.Time) bool {
	return !t.Before(d.at(remindFrom)) && t.Before(d.at(remindMake))
}

// next is the first moment of reminders after the day. Brazzaville has no summer time.
func (d day) next() time.Time { return d.at(24*time.Hour + remindFrom) }

// again is when an account is looked at again after a pause: today, or when the next day begins.
func (d day) again(now time.Time, pause time.Duration) time.Time {
	if t := now.Add(pause); d.makes(t) {
		return t
	}
	return d.next()
}

// stageOf returns the stage of a due date on a day, in days before, and the midnight at which the
// stage began: a reminder that could not be sent on its day, because the ERP was away or the choice
// is new, is sent on the next one, and never after the due date.
func (d day) stageOf(due time.Time) (citizens.Stage, time.Time, bool) {
	if due.IsZero() {
		return 0, time.Time{}, false
	}
	y, m, n := d.midnight.Date()
	left := due.Sub(time.Date(y, m, n, 0, 0, 0, 0, time.UTC)).Hours() / 24
	for _, stage := range []citizens.Stage{citizens.StageWeek, citizens.StageDay} {
		if days := float64(stage); left == days || left == days-1 {
			return stage, d.midnight.AddDate(0, 0, int(left-days)), true
		}
	}
	return 0, time.Time{}, false
}

// round looks at some accounts, and returns their number.
func (r *Reminders) round(ctx context.Context) (looked int, err error) {
	now := r.cfg.Now()
	today := dayOf(now)
	if !today.makes(now) {
		r.waits.Set(0)
		return 0, nil
	}
	wait, err := r.cfg.Accounts.RemindersWait(ctx)
	if err != nil {
		return 0, err
	}
	r.waits.Set(min(wait, now.Sub(today.at(remindFrom))).Seconds())
	accounts, err := r.cfg.Accounts.Remind(ctx, r.cfg.Live, remindAtOnce, remindLease)
	var wg sync.WaitGroup
	for _, account := range accounts {
		wg.Go(func() { r.look(ctx, account, today) })
	}
	wg.Wait()
	return len(accounts), err
}

// look looks at an account, and says when it is looked at again.
func (r *Reminders) look(ctx context.Context, account citizens.Reminded, today day) {
	bounded, cancel := context.WithTimeout(ctx, remindWithin)
	defer cancel()
	outcome, err := r.remind(bounded, account, today)
	if err != nil {
		outcome = checkFailed
		if errors.Is(err, citizens.ErrLease) {
			outcome = checkLost
		} else if ctx.Err() == nil {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a citizen is not reminded; it is tried again", slog.Any("error", err))
		}
	}
	r.checks.WithLabelValues(outcome).Inc()
	next := today.next()
	switch outcome {
	case checkIncomplete:
		next = today.again(r.cfg.Now(), remindAgain)
	case checkPaced, checkFailed:
		next = today.again(r.cfg.Now(), remindSoon)
	}
	if err := r.cfg.Accounts.Rest(context.WithoutCancel(ctx), account, next); err != nil { // it is taken again after its lease
		r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a citizen who was reminded is looked at again", slog.Any("error", err))
	}
}

// near is a due near its date.
type near struct {
	citizens.ReminderDue
	erp.Due
	agency string
}

// remind tells an account of its dues.
func (r *Reminders) remind(ctx context.Context, account citizens.Reminded, today day) (outcome string, err error) {
	outcome = checkDone
	var dues []near
	for _, link := range account.Links {
		some, how, err := r.nearOf(ctx, link, today)
		if err != nil {
			return "", err
		}
		dues = append(dues, some...)
		if how != checkDone && outcome != checkIncomplete {
			outcome = how
		}
	}
	slices.SortStableFunc(dues, func(a, b near) int { return a.DueDate.Compare(b.DueDate) })
	offered := make([]citizens.ReminderDue, len(dues))
	for i, d := range dues {
		offered[i] = d.ReminderDue
	}
	messages, err := r.cfg.Accounts.Write(ctx, account, offered)
	if err != nil {
		return "", err
	}
	for _, m := range messages {
		of := make([]near, len(m.Dues))
		for i, at := range m.Dues {
			of[i] = dues[at]
		}
		told := dueReminded
		if err := r.cfg.Sender.Send(ctx, r.message(account, m.Key, of, today)); err != nil {
			var wrong *notify.FieldError
			if !errors.As(err, &wrong) {
				return "", err
			}
			r.cfg.Log.LogAttrs(ctx, slog.LevelError, "a citizen cannot be reminded", slog.Any("error", err))
			told = dueUnreachable
		}
		r.dues.WithLabelValues(told).Add(float64(len(of)))
		if err := r.cfg.Accounts.Wrote(ctx, account, m.Key); err != nil {
			return "", err
		}
	}
	return outcome, nil
}

// nearOf asks the ERP of a link for dues near their date that are not being paid. how is
// checkDone when all is known.
func (r *Reminders) nearOf(ctx context.Context, link citizens.Link, today day) (dues []near, how string, err error) {
	subject := link.Subject
	agency, ok := r.cfg.Agency(subject.AgencyID)
	if !ok {
		return nil, checkDone, nil
	}
	if r.resting(subject.AgencyID) {
		return nil, checkIncomplete, nil
	}
	wait, ok, err := r.cfg.Accounts.AskPace(ctx, subject.AgencyID, r.cfg.Gap, paceAtMost)
	switch {
	case err != nil:
		return nil, "", err
	case !ok:
		return nil, checkPaced, nil
	case !consume.Sleep(ctx, wait):
		return nil, "", ctx.Err()
	}
	pulled := r.cfg.Now()
	answer, err := r.cfg.Dues.Fresh(ctx, subject.AgencyID, subject.Live, subject.Ref)
	switch {
	case errors.Is(err, erp.ErrNoERP), errors.Is(err, erp.ErrReference):
		return nil, checkDone, nil
	case err != nil:
		return nil, "", err
	case answer.Status != erp.SourceOK:
		r.rest(subject.AgencyID)
		r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reminders wait for an agency's ERP", slog.String("tenant_id", subject.AgencyID), slog.String("reason", answer.Reason))
		return nil, checkIncomplete, nil
	}
	var refs []string
	for _, d := range answer.Dues {
		if stage, from, ok := today.stageOf(d.DueDate); ok && !d.Paid() {
			dues = append(dues, near{citizens.ReminderDue{Link: link, Ref: d.Ref, Stage: stage, From: from}, d, agency})
			refs = append(refs, d.Ref)
		}
	}
	if len(dues) == 0 {
		return nil, checkDone, nil
	}
	claimants, err := r.cfg.Sessions.Claimants(ctx, subject.AgencyID, subject.Live, refs)
	if err != nil {
		return nil, "", err
	}
	how = checkDone
	dues = slices.DeleteFunc(dues, func(d near) bool {
		switch checkout.DueStateOf(claimants, d.Due.Ref, pulled, d.Outstanding) {
		case checkout.DueInPayment:
			r.dues.WithLabelValues(dueInPayment).Inc()
			how = checkIncomplete
			return true
		case checkout.DueRecording:
			r.dues.WithLabelValues(dueRecording).Inc()
			return true
		case checkout.DuePayable:
		}
		return false
	})
	return dues, how, nil
}

// resting reports whether the ERP of an agency did not answer a short time ago.
func (r *Reminders) resting(agencyID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, is := r.rests[agencyID]
	if is && !r.cfg.Now().Before(until) {
		delete(r.rests, agencyID)
		is = false
	}
	return is
}

func (r *Reminders) rest(agencyID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rests[agencyID] = r.cfg.Now().Add(erpRests)
}

// message returns the message of dues to an account. They are sorted by their dates.
func (r *Reminders) message(account citizens.Reminded, key string, dues []near, today day) notify.Message {
	lang, agency, agencyID := account.Locale, dues[0].agency, dues[0].Link.Subject.AgencyID
	if slices.ContainsFunc(dues, func(d near) bool { return d.Link.Subject.AgencyID != agencyID }) {
		agency, agencyID = reminderWords[lang].several, ""
	}
	m := notify.Message{
		ID: notify.MessageID(notify.DueReminder, channelTo(account.Address), key), Kind: notify.DueReminder, Channel: channelTo(account.Address),
		To: account.Address.Text(), Locale: string(lang), AgencyID: agencyID, Live: r.cfg.Live,
		At: r.cfg.Now().UTC().Truncate(time.Millisecond), NotAfter: today.at(remindUntil).UTC(),
		Variables: map[string]string{
			notify.VariableCount: strconv.Itoa(len(dues)), notify.VariableAmount: sumOf(lang, dues), notify.VariableDate: dateOf(lang, dues[0].DueDate),
			notify.VariableAgency: shortened(agency, agencyInSMS),
		},
	}
	if m.Channel == provider.ChannelEmail {
		m.Variables[notify.VariableAgency] = shortened(agency, listedText)
		m.Variables[notify.VariableDues] = listOf(lang, dues)
	}
	return m
}

func channelTo(a contact.Address) provider.Channel {
	if a.Kind == contact.Phone {
		return provider.ChannelSMS
	}
	return provider.ChannelEmail
}

// reminderWords are the words of variables.
var reminderWords = map[money.Language]struct{ several, line, unnamed, more string }{
	money.French:  {"plusieurs administrations", "- %s\u00a0: %s, à payer au plus tard le %s\n  %s, référence %s", "Montant à payer", "- et %d autres, à voir sur le site"},
	money.English: {"several agencies", "- %s: %s, to be paid by %s\n  %s, reference %s", "Amount to pay", "- and %d more, to be seen on the site"},
}

// listOf returns the list of dues of an e-mail.
func listOf(lang money.Language, dues []near) string {
	words := reminderWords[lang]
	var lines []string
	for i, d := range dues {
		if i == listedDues {
			lines = append(lines, fmt.Sprintf(words.more, len(dues)-i))
			break
		}
		label := cmp.Or(shortened(d.labels(), listedText), words.unnamed)
		lines = append(lines, fmt.Sprintf(words.line, label, amountOf(lang, d.Currency, d.Outstanding), dateOf(lang, d.DueDate), shortened(d.agency, listedText), d.Link.Subject.Masked()))
	}
	return strings.Join(lines, "\n")
}

// labels returns what a due is: its service, and its own label, which tells dues of a service apart.
func (d near) labels() string {
	labels := slices.Compact([]string{d.Service.Label, d.Label})
	return strings.Join(slices.DeleteFunc(labels, func(l string) bool { return l == "" }), ", ")
}

// sumOf returns the sum of the dues of each currency.
func sumOf(lang money.Language, dues []near) string {
	var currencies []string
	sums := map[string]int64{}
	for _, d := range dues {
		if !slices.Contains(currencies, d.Currency) {
			currencies = append(currencies, d.Currency)
		}
		sums[d.Currency] += d.Outstanding
	}
	for i, c := range currencies {
		currencies[i] = amountOf(lang, c, sums[c])
	}
	return strings.Join(currencies, " + ")
}

func amountOf(lang money.Language, currency string, minor int64) string {
	c, ok := money.Lookup(currency)
	if !ok {
		return strconv.FormatInt(minor, 10) + " " + currency
	}
	return c.Format(lang, minor)
}

// dateOf returns a due date: 30/11/2026, and in English 30 November 2026, which cannot be read in
// two ways.
func dateOf(lang money.Language, due time.Time) string {
	if lang == money.English {
		return language.Day(lang, due)
	}
	return due.Format("02/01/2006")
}

// shortened returns a text of at most so many characters, without links, cut off after a word.
func shortened(text string, most int) string {
	text = notify.WithoutLinks(text)
	if len([]rune(text)) <= most {
		return text
	}
	cut := string([]rune(text)[:most-2]) // "…" takes three in an SMS
	if at := strings.LastIndexByte(cut, ' '); at > most/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:-–") + "…"
}
