package roles

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/citizens"
	"quittance/internal/intake"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/sinks/readmodel"
)

func readmodelRole() Role {
	return Role{
		Kind: KindSink, Name: "readmodel", Short: "writes sessions to Postgres", Needs: []Need{NeedPostgres},
		Access: Access{Groups: []Group{{readmodel.Group, []string{schemas.TopicEvents}}}, Writes: []string{schemas.TopicPoisonReadmodel}},
		Run:    (*Base).readmodel,
	}
}

func (b *Base) readmodel() error {
	b.Run("personal data sweep", b.sweepPersonalData)
	if err := b.watchCitizens(); err != nil {
		return err
	}
	return add(b, "readmodel", readmodel.New, readmodel.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log, Metrics: b.Metrics,
	})
}

// sweepEvery is the pause between two deletions of old keys of personal data.
const sweepEvery = time.Hour

// sweepPersonalData deletes the keys of personal data that no event deletes, and the files of statements
// that are old enough.
func (b *Base) sweepPersonalData(ctx context.Context) error {
	for {
		n, err := personal.Sweep(ctx, b.Pool, b.Now())
		switch {
		case err != nil && ctx.Err() == nil:
			b.Log.LogAttrs(ctx, slog.LevelWarn, "old keys of personal data are not deleted", slog.Any("error", err))
		case n > 0:
			b.Log.LogAttrs(ctx, slog.LevelInfo, "deleted old keys of personal data", slog.Int64("keys", n))
		}
		n, err = intake.SweepOriginals(ctx, b.Pool, b.Now())
		switch {
		case err != nil && ctx.Err() == nil:
			b.Log.LogAttrs(ctx, slog.LevelWarn, "old files of statements are not deleted", slog.Any("error", err))
		case n > 0:
			b.Log.LogAttrs(ctx, slog.LevelInfo, "deleted old files of statements", slog.Int64("files", n))
		}
		if !consume.Sleep(ctx, sweepEvery) {
			return nil
		}
	}
}

// watchCitizens deletes what citizens' accounts do not need any more, and exposes what alerts
// watch.
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
	b.Run("citizens' accounts", func(ctx context.Context) error {
		for swept := (time.Time{}); ; {
			s, err := citizens.ReadState(ctx, b.Pool, b.Now(), smsPerHour, mailPerHour)
			if err == nil {
				guessed.Set(float64(s.Guessed))
				stopped.Set(map[bool]float64{true: 1}[s.SMSStopped])
				mail.Set(map[bool]float64{true: 1}[s.MailStopped])
				renewal.Set(s.OldestRenewal.Seconds())
				notice.Set(s.OldestNotice.Seconds())
			}
			if now := b.Now(); err == nil && now.Sub(swept) >= sweepEvery {
				err = citizens.Sweep(ctx, b.Pool, now)
				swept = now
			}
			if err != nil && ctx.Err() == nil {
				b.Log.LogAttrs(ctx, slog.LevelWarn, "citizens' accounts are not looked after; it is tried again", slog.Any("error", err))
			}
			if !consume.Sleep(ctx, stateEvery) {
				return nil
			}
		}
	})
	return nil
}
