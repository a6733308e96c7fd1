package messages_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/internal/deliveries"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/schemas/record"
)

// size of a run.
type size struct {
	people  int             // that one load writes to
	rounds  int             // of loads with kills
	kills   int             // at random moments of a round
	outages int             // of both providers, each of a day
	steps   []time.Duration // of the clock during an outage
	seed    uint64
}

func sizeFromEnvironment(t *testing.T) size {
	t.Helper()
	s := size{people: 9, rounds: 1, kills: 2, outages: 1, steps: []time.Duration{time.Minute, 36 * time.Minute, 23*time.Hour + 23*time.Minute}, seed: rand.Uint64()}
	if os.Getenv("QUITTANCE_MESSAGES") == "full" {
		s.people, s.rounds, s.kills, s.outages = 60, 6, 8, 2
		s.steps = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 15*time.Hour + 24*time.Minute}
	}
	if text := os.Getenv("QUITTANCE_MESSAGES_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("QUITTANCE_MESSAGES_SEED: %q is not a number", text)
		}
		s.seed = n
	}
	return s
}

// Workers are killed, providers misbehave and are away for a day. No message is lost, none that
// was recorded as accepted is sent again, and no code arrives twice or late.
func TestMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and disturbs it")
	}
	t.Parallel()
	size := sizeFromEnvironment(t)
	t.Logf("seed %d", size.seed)
	chance := rand.New(rand.NewPCG(size.seed, 0))
	begun := time.Now()
	w := newWorld(t)
	t.Logf("ready after %v", measure.Rounded(time.Since(begun)))
	w.badAddress()
	w.calm(size.people)
	for range size.rounds {
		w.disturbed(size, chance)
		w.killedBetweenCallAndRecord()
		w.killedBetweenRecordAndOutcome()
		w.killedUntilCodesAreWorthless()
	}
	w.flood()
	for range size.outages {
		w.outage(size, chance)
	}
	w.finish()

	v, err := judge(w.findings())
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range v.faults {
		t.Error(fault)
	}
	publish(t, v.line(int(w.kills.Load())))
}

// publish logs the report and writes it to the file of QUITTANCE_MESSAGES_REPORT.
func publish(t *testing.T, report string) {
	t.Helper()
	t.Logf("\n%s", report)
	if file := os.Getenv("QUITTANCE_MESSAGES_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(report+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func (w *world) attempt(r *kgo.Record) (a record.Attempt, err error) {
	return a, w.codec.Decode(r.Value, &a)
}

// load asks for messages of all kinds to so many people, and returns the sessions that were paid.
// codes are the reasons for which codes may lapse, receipts those of receipts.
func (w *world) load(people int, codes, receipts []string, pause func()) (paid []checkout.Session) {
	w.t.Helper()
	for n := range people {
		phone, email := w.person()
		w.ask(notify.SignInCode, provider.ChannelSMS, phone, codes...)
		w.ask(notify.SignInCode, provider.ChannelEmail, email, codes...)
		s := w.pay(receipts...)
		if n%3 == 0 {
			w.ask(notify.Refunded, provider.ChannelSMS, phone)
			w.ask(notify.NewLink, provider.ChannelEmail, email)
		}
		paid = append(paid, s)
		pause()
	}
	return paid
}

// calm asks for messages while nothing but the providers' reports is unusual: reports come twice,
// before the answer, in the wrong order, about unknown messages, or never; a few messages are
// refused in an answer 200. All codes must arrive.
func (w *world) calm(people int) {
	kinds := []string{"twice", "early", "disordered", "stranger", "none", "absent"}
	n := 0
	paid := w.load(people, nil, []string{"reversed"}, func() {
		w.control("sms", fmt.Sprintf(`{"report":%q,"times":3}`, kinds[n%len(kinds)]))
		n++
	})
	w.quiet("calm")
	for _, s := range paid[:people/3] {
		w.reverse(s)
	}
	w.quiet("calm, reversed")
	if n := w.count(`SELECT count(*) FROM message_reports WHERE state = 'delivered'`); n == 0 {
		w.t.Error("no provider's report was recorded")
	}
	// An answer 200 with an error inside. The message is sent again after a minute.
	w.control("sms", `{"refuse":"temporary","times":2}`)
	phone, _ := w.person()
	w.ask(notify.Refunded, provider.ChannelSMS, phone)
	w.ask(notify.Refunded, provider.ChannelSMS, phone)
	w.quiet("refused in an answer 200")
	if n := w.count(`SELECT count(*) FROM deliveries WHERE reason LIKE 'busy:%'`); n != 2 {
		w.t.Errorf("%d messages were refused in an answer 200, want 2", n)
	}
}

// badAddress sends to a mailbox that does not exist. Further messages to it lapse.
func (w *world) badAddress() {
	const gone = "gone@example.org"
	w.control("mail", `{"status":550,"times":1}`)
	w.ask(notify.Reversed, provider.ChannelEmail, gone, "refused:smtp_550")
	w.quiet("the bounce")
	w.ask(notify.Reversed, provider.ChannelEmail, gone, "suppressed")
	w.quiet("after the bounce")
	if n := w.count(`SELECT count(*) FROM deliveries WHERE state = 'exhausted'`); n != 2 {
		w.t.Errorf("%d of 2 messages to a mailbox that does not exist have lapsed", n)
	}
}

// disturbed kills workers at random moments of a load, while a provider does not answer some
// calls.
func (w *world) disturbed(size size, chance *rand.Rand) {
	t := w.t
	w.control("sms", `{"hang":true,"times":2}`)
	w.control("mail", `{"hang":true,"times":2}`)
	ended := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		defer close(ended)
		w.load(size.people, lapsesOfCodes, nil, func() { time.Sleep(50 * time.Millisecond) })
	})
	defer load.Wait()
	for n := 0; ; n++ {
		time.Sleep(time.Duration(300+chance.IntN(1500)) * time.Millisecond)
		victims := w.workers[n%2 : n%2+1]
		if chance.IntN(3) == 0 {
			victims = w.workers
		}
		w.kill(victims...)
		w.start(victims...)
		select {
		case <-ended:
			if n+1 >= size.kills {
				w.ready()
				w.control("sms", `{"reset":true}`)
				w.control("mail", `{"reset":true}`)
				w.quiet("after the kills")
				w.advance(2 * time.Minute)
				return
			}
		default:
		}
		if t.Failed() {
			return
		}
	}
}

func (w *world) ready() {
	w.t.Helper()
	if err := program.AwaitReady(w.t.Context(), w.workers...); err != nil {
		w.t.Fatal(err)
	}
}

// killedBetweenCallAndRecord kills both workers while the providers have messages, and have not
// answered. Codes are not sent again. Other messages are.
func (w *world) killedBetweenCallAndRecord() {
	w.control("sms", `{"delay":"5s","report":"none"}`)
	w.control("mail", `{"delay":"5s"}`)
	var ids []string
	for range 2 {
		phone, email := w.person()
		ids = append(ids, w.ask(notify.SignInCode, provider.ChannelSMS, phone, lapsesOfCodes...), w.ask(notify.SignInCode, provider.ChannelEmail, email, lapsesOfCodes...))
		phone, email = w.person()
		ids = append(ids, w.ask(notify.Reversed, provider.ChannelSMS, phone), w.ask(notify.Reversed, provider.ChannelEmail, email))
	}
	w.until("the providers have the messages", func() bool { return w.arrived(ids) == len(ids) })
	w.kill(w.workers...)
	w.control("sms", `{"reset":true}`)
	w.control("mail", `{"reset":true}`)
	if n := w.count(`SELECT count(*) FROM deliveries WHERE event_id = ANY($1)`, ids); n > 0 {
		w.t.Logf("%d of %d messages were recorded before the kill", n, len(ids))
	}
	w.start(w.workers...)
	w.quiet("killed between call and record")
}

// killedBetweenRecordAndOutcome kills both workers after Postgres knows that the provider has
// accepted the messages, and before Kafka has their outcomes. They are not sent again.
func (w *world) killedBetweenRecordAndOutcome() {
	w.control("sms", `{"delay":"2s","report":"none"}`)
	var ids []string
	for range 4 {
		phone, _ := w.person()
		ids = append(ids, w.ask(notify.Reversed, provider.ChannelSMS, phone))
	}
	w.until("the provider has the messages", func() bool { return w.arrived(ids) == len(ids) })
	restart := w.stopBroker()
	w.until("Postgres knows that they are accepted", func() bool {
		return w.count(`SELECT count(*) FROM message_reports WHERE message_id = ANY($1) AND accepted_at IS NOT NULL`, ids) == len(ids)
	})
	w.kill(w.workers...)
	w.control("sms", `{"reset":true}`)
	restart()
	w.start(w.workers...)
	w.quiet("killed between record and outcome")
}

// killedUntilCodesAreWorthless keeps codes from the workers for longer than their life.
func (w *world) killedUntilCodesAreWorthless() {
	w.kill(w.workers...)
	before := len(w.asked)
	for range 3 {
		phone, email := w.person()
		w.ask(notify.SignInCode, provider.ChannelSMS, phone, "expired")
		w.ask(notify.SignInCode, provider.ChannelEmail, email, "expired")
	}
	w.forward(notify.SignInCode.Life + time.Second)
	for i := range w.asked[before:] {
		w.asked[before+i].held = true
	}
	w.start(w.workers...)
	w.quiet("codes that are worthless")
}

// flood asks for more messages to one address than it may get. Those about money wait, also
// through the outage.
func (w *world) flood() {
	_, email := w.person()
	for range notify.PerHour + 6 {
		w.ask(notify.Reversed, provider.ChannelEmail, email)
	}
	w.quiet("a flood of one address")
	w.ask(notify.NewPasskey, provider.ChannelEmail, email, "limited")
	w.quiet("a flood of one address")
}

// outage takes both providers away for a day of the service's clock.
func (w *world) outage(size size, chance *rand.Rand) {
	w.control("sms", `{"status":503}`)
	w.control("mail", `{"status":421}`)
	paid := w.load(size.people, lapsesOfCodes, []string{"reversed"}, func() {})
	w.quiet("the providers are away")
	for n, step := range size.steps {
		w.forward(step + time.Second)
		if n%2 == 1 {
			time.Sleep(time.Duration(chance.IntN(500)) * time.Millisecond)
			w.kill(w.workers[n/2%2])
			w.start(w.workers[n/2%2])
		}
		if n == 1 {
			for _, s := range paid[:len(paid)/3] {
				w.reverse(s)
			}
		}
		w.quiet(fmt.Sprintf("away, %v later", step))
	}
	if n := w.count(`SELECT count(*) FROM deliveries WHERE state = $1`, deliveries.StateWaiting); n < size.people {
		w.t.Errorf("%d messages wait for the providers, want at least %d", n, size.people)
	}
	w.control("sms", `{"reset":true}`)
	w.control("mail", `{"reset":true}`)
	w.finish()
}
