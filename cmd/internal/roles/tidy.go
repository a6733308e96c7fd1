package roles

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/citizens"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
)

func tidyRole() Role {
	return Role{
		Kind: KindSink, Name: "tidy", Short: "deletes what is old enough, and watches citizens' accounts", Needs: []Need{NeedPostgres},
		// It deletes and adds nothing, in tables that are derived or that hold what people may be forgotten by.
		Databases: Databases{Rows: rows(
			may("select", "api_keys", "citizen_addresses", "citizens", "link_renewals", "statement_accounts", "statement_imports"),
			may("select delete", "citizen_links", "citizen_notices", "citizen_reminded", "citizen_reminders", "citizen_sessions", "clerk_devices",
				"clerk_sessions", "disbursement_names", "disbursement_notes", "disbursement_payees", "known_browsers", "link_failures", "passkey_challenges", "personal_keys", "sign_in_codes", "sign_in_failures",
				"sign_in_requests", "staff_challenges", "staff_issuer_sign_ins", "staff_logout_tokens", "staff_sessions", "statement_originals", "subject_contacts"))},
		Run: (*Base).tidy,
	}
}

const (
	// tidyEvery is the pause between two rounds of deletions, tidyAgain that after a round in which one failed.
	tidyEvery = time.Hour
	tidyAgain = time.Minute
)

// tidyStep deletes rows that no event deletes.
type tidyStep struct {
	what string
	do   func(ctx context.Context, now time.Time) error
}

// tidySteps are all deletions of a round. Any number of instances may run them at the same time.
func (b *Base) tidySteps() []tidyStep {
	pool := b.Pool
	return []tidyStep{
		{"keys of personal data", func(ctx context.Context, now time.Time) error { _, err := personal.Sweep(ctx, pool, now); return err }},
		{"payees of batches", func(ctx context.Context, now time.Time) error { return disbursements.SweepPayees(ctx, pool, now) }},
		{"files of statements", func(ctx context.Context, now time.Time) error {
			_, err := intake.SweepOriginals(ctx, pool, now)
			return err
		}},
		{"sessions of clerks", func(ctx context.Context, now time.Time) error { return identity.Sweep(ctx, pool, now) }},
		{"citizens' accounts", func(ctx context.Context, now time.Time) error { return citizens.Sweep(ctx, pool, now) }},
	}
}

func (b *Base) tidy() error {
	steps := b.tidySteps()
	failures := promauto.With(b.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_tidy_failures_total", Help: "Deletions of old rows that failed; they are tried again.",
	}, []string{"what"})
	last := promauto.With(b.Metrics).NewGauge(prometheus.GaugeOpts{
		Name: "quittance_tidy_last_round_timestamp_seconds", Help: "Unix time at which this process last deleted all that is old enough.",
	})
	for _, s := range steps {
		failures.WithLabelValues(s.what)
	}
	b.Run("deletions", func(ctx context.Context) error {
		for {
			pause := tidyEvery
			for _, s := range steps {
				if err := s.do(ctx, b.Now()); err != nil && ctx.Err() == nil {
					pause = tidyAgain
					failures.WithLabelValues(s.what).Inc()
					b.Log.LogAttrs(ctx, slog.LevelWarn, "old rows are not deleted; it is tried again", slog.String("what", s.what), slog.Any("error", err))
				}
			}
			if pause == tidyEvery && ctx.Err() == nil {
				last.SetToCurrentTime()
			}
			if !consume.Sleep(ctx, pause) {
				return nil
			}
		}
	})
	return b.watchCitizens()
}

// watchCitizens exposes what alerts watch of citizens' accounts.
func (b *Base) watchCitizens() error {
	smsPerHour, mailPerHour, err := b.signInCodes()
	if err != nil {
		return err
	}
	gauge := func(name, help string) prometheus.Gauge {
		return promauto.With(b.Metrics).NewGauge(prometheus.GaugeOpts{Name: "quittance_citizen_" + name, Help: help + " Every instance reports the same."})
	}
	guessed := gauge("guessed_subjects", "Subjects with 100 wrong link codes or more in the last day.")
	stopped := gauge("sms_stopped", "1 while sign-in codes go by e-mail only, because the limit of the whole service is reached.")
	mail := gauge("mail_stopped", "1 while browsers in which nobody signed in before get no sign-in codes by e-mail, because their limit of the whole service is reached.")
	renewal := gauge("oldest_renewal_seconds", "Age of the oldest request of a holder for a new link code.")
	notice := gauge("oldest_notice_seconds", "Age of the oldest notice to a citizen that is not sent.")
	pool := b.Pool
	b.Run("citizens' accounts", func(ctx context.Context) error {
		for {
			s, err := citizens.ReadState(ctx, pool, b.Now(), smsPerHour, mailPerHour)
			if err == nil {
				guessed.Set(float64(s.Guessed))
				stopped.Set(map[bool]float64{true: 1}[s.SMSStopped])
				mail.Set(map[bool]float64{true: 1}[s.MailStopped])
				renewal.Set(s.OldestRenewal.Seconds())
				notice.Set(s.OldestNotice.Seconds())
			}
			if err != nil && ctx.Err() == nil {
				b.Log.LogAttrs(ctx, slog.LevelWarn, "citizens' accounts are not watched; it is tried again", slog.Any("error", err))
			}
			if !consume.Sleep(ctx, stateEvery) {
				return nil
			}
		}
	})
	return nil
}
