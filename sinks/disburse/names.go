package disburse

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"quittance/disbursement/digest"
	"quittance/internal/connector"
	"quittance/internal/disbursements"
	"quittance/internal/kafka/consume"
)

// NamesConfig configures Names. All fields but Every are required.
type NamesConfig struct {
	Batches *disbursements.Store
	// Connectors, Account and Open are as in Config.
	Connectors map[string]connector.PayoutConnector
	Account    func(tenantID string, live bool, code, fingerprint string) (Account, bool)
	Open       func(ctx context.Context, batch string, position int, sealed []byte) (salt [32]byte, content digest.Line, err error)
	// Every is the pause between two looks for names when none waits; 5 s if zero.
	Every time.Duration

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Names asks operators for the names of payees of drafts, and stores how they compare with those of the lines. The names themselves
// are kept nowhere. One instance of all asks at a time, so that an account has no more questions than its operator takes
// (connector.Config.EnquiriesPerSecond).
type Names struct {
	cfg   NamesConfig
	asked *prometheus.CounterVec
	// silent are accounts that did not answer, with the time until which they are left alone.
	silent map[accountKey]time.Time
}

// accountKey names an account of an agency.
type accountKey struct {
	tenantID string
	live     bool
	account  string
}

const (
	namesEvery = 5 * time.Second
	// againAfter is when a question without an answer is put again, and silentAfter how many in a row leave an account alone.
	againAfter  = time.Minute
	silentAfter = 3
	// accountsAtOnce is how many accounts are asked at the same time.
	accountsAtOnce = 16
	// unanswered is the label of questions without a verdict.
	unanswered = "unanswered"
)

// NewNames checks the configuration and makes Names.
func NewNames(cfg NamesConfig) (*Names, error) {
	if cfg.Batches == nil || len(cfg.Connectors) == 0 || cfg.Account == nil || cfg.Open == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("disburse: Batches, Connectors, Account, Open, Now, Log and Metrics are required to ask for names")
	}
	if cfg.Every == 0 {
		cfg.Every = namesEvery
	}
	n := &Names{cfg: cfg, silent: map[accountKey]time.Time{}, asked: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_disburse_names_total", Help: "Questions to operators for the names of payees, by how the name compares with that of the line, or unanswered.",
	}, []string{"operator", "verdict"})}
	for _, c := range cfg.Connectors {
		for _, v := range append([]connector.NameVerdict{unanswered}, connector.NameVerdicts...) {
			n.asked.WithLabelValues(c.Operator(), string(v))
		}
	}
	return n, nil
}

// Run asks until ctx ends, and returns nil.
func (n *Names) Run(ctx context.Context) error {
	for pause := time.Duration(0); consume.Sleep(ctx, pause); {
		pause = n.cfg.Every
		err := n.cfg.Batches.AloneForNames(ctx, func(ctx context.Context) error {
			list, err := n.cfg.Batches.WaitingNames(ctx, n.cfg.Now())
			if err != nil {
				return err
			}
			if n.pass(ctx, list) > 0 {
				pause = 0
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			n.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "names of payees cannot be asked for; it is tried again", slog.Any("error", err))
		}
	}
	return nil
}

// pass asks for names, those of each account one after the other. It returns how many verdicts it has stored.
func (n *Names) pass(ctx context.Context, list []disbursements.WaitingName) (told int) {
	now := n.cfg.Now()
	byAccount := map[accountKey][]disbursements.WaitingName{}
	for _, w := range list {
		key := accountKey{w.TenantID, w.Live, w.Account}
		if now.Before(n.silent[key]) {
			continue
		}
		byAccount[key] = append(byAccount[key], w)
	}
	type result struct {
		key    accountKey
		told   int
		silent bool
	}
	results := make(chan result, len(byAccount))
	var g errgroup.Group
	g.SetLimit(accountsAtOnce)
	for key, of := range byAccount {
		g.Go(func() error {
			told, silent := n.account(ctx, of)
			results <- result{key, told, silent}
			return nil
		})
	}
	_ = g.Wait() // never fails
	close(results)
	for r := range results {
		told += r.told
		if delete(n.silent, r.key); r.silent {
			n.silent[r.key] = now.Add(againAfter)
		}
	}
	return told
}

// account asks for names of one account. silent says that its operator does not answer.
func (n *Names) account(ctx context.Context, of []disbursements.WaitingName) (told int, silent bool) {
	missed := 0
	var nobody disbursements.WaitingName // the last line of which nobody can be asked: neither of the others of its batch and account
	for _, w := range of {
		if w.Batch == nobody.Batch && w.Fingerprint == nobody.Fingerprint {
			continue
		}
		operator, verdict, err := n.ask(ctx, w)
		switch {
		case ctx.Err() != nil:
			return told, false
		case errors.Is(err, errNoNames):
			nobody = w
			n.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "nobody can be asked for the names of payees of a batch; it is tried again", slog.String("batch", w.Batch), slog.String("account", w.Account))
			err = n.cfg.Batches.AskNamesAgain(ctx, w, n.cfg.Now().Add(againAfter))
		case operator == "" && err != nil: // no call: the operator is not silent
			n.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "a payee's name cannot be asked for; it is tried again", slog.String("batch", w.Batch), slog.Int("position", w.Position))
			err = n.cfg.Batches.AskNameAgain(ctx, w, n.cfg.Now().Add(againAfter))
		case err == nil:
			err, missed = n.cfg.Batches.KeepName(ctx, w, verdict), 0
			told++
		default:
			missed++
			verdict = unanswered
			// The error of an operator has neither name nor number; that of a database may have what a log must not.
			n.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the name of a payee was not told; it is asked for again", slog.String("batch", w.Batch), slog.Int("position", w.Position),
				slog.String("account", w.Account), slog.String("fault", string(connector.FaultOf(err))))
			err = n.cfg.Batches.AskNameAgain(ctx, w, n.cfg.Now().Add(againAfter))
		}
		if operator != "" {
			n.asked.WithLabelValues(operator, string(verdict)).Inc()
		}
		if err != nil {
			n.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "what was told of a payee's name is not stored", slog.String("batch", w.Batch), slog.Any("error", err))
			return told, true
		}
		if missed == silentAfter {
			return told, true
		}
	}
	return told, false
}

// errNoNames says that nobody can be asked for the name of a line.
var errNoNames = errors.New("the account is unknown, locked or replaced, or its operator tells no names")

// ask asks the operator of a line for the name of its payee.
func (n *Names) ask(ctx context.Context, w disbursements.WaitingName) (operator string, verdict connector.NameVerdict, err error) {
	account, ok := n.cfg.Account(w.TenantID, w.Live, w.Account, w.Fingerprint)
	pays := n.cfg.Connectors[account.Operator]
	checker, tells := pays.(connector.PayeeChecker)
	if !ok || account.Replaced || !tells {
		return "", "", errNoNames
	}
	_, content, err := n.cfg.Open(ctx, w.Batch, w.Position, w.Sealed)
	if err != nil {
		return "", "", opening(err)
	}
	payee, err := pays.Payee(content.MSISDN)
	if err != nil {
		return "", "", errPayee // not err: it may quote the number
	}
	verdict, err = checker.CheckPayee(ctx, account.Account, payee, content.Name)
	return pays.Operator(), verdict, err
}
