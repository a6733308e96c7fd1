package citizens

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/network"
)

// The limits of codes by e-mail that browsers ask for which are not known. An e-mail costs little,
// but whoever causes thousands to strangers has the service's messages refused as spam, and then
// nobody signs in by e-mail.
const (
	mailLeast = 600 // an hour, of the whole service
	// mailSample is the number of codes of the last hour, entered or too old to be, from which on
	// they tell a flood: fewer than one in mailEntered were entered.
	mailSample  = 100
	mailEntered = 5
	// mailShrink is the part of the limit that is left during a flood, and half of mailLeast at
	// least.
	mailShrink = 4
	// mailDomain, mailSite and mailProvider are the parts of the limit for one domain of addresses
	// and for the networks of one client. Three times the codes that its people entered in the
	// busiest hour of seven days is more.
	mailDomain, mailSite, mailProvider = 3, 10, 4
)

// DefaultMailPerHour is the most codes by e-mail of an hour, unless configured.
const DefaultMailPerHour = 10_000

// ErrMailLimited says that too many codes go by e-mail now: of the whole service, to the domain of
// the address, or from the network of the client. Nothing of it depends on whether the address has
// an account.
var ErrMailLimited = errors.New("too many codes by e-mail are asked for")

// mailCodes are the codes by e-mail of the last hour.
type mailCodes struct {
	all     int // also of known browsers
	unknown int // of browsers that are not known, as those below
	domain  int
	site    int
	// provider counts the codes that were sent from the client's network of that width.
	provider int
}

func (a *asked) mailCodes(ctx context.Context, db querier) (n mailCodes, err error) {
	networks := network.Of(a.Client)
	err = db.QueryRow(ctx, `
		SELECT count(*), count(*) FILTER (WHERE known IS NULL), count(*) FILTER (WHERE known IS NULL AND domain = $2),
			count(*) FILTER (WHERE known IS NULL AND site = $3), count(*) FILTER (WHERE known IS NULL AND provider = $4)
		FROM sign_in_requests WHERE domain IS NOT NULL AND sent AND at > $1`,
		a.now.Add(-time.Hour), a.domain, networks[network.Site], networks[network.Provider]).Scan(&n.all, &n.unknown, &n.domain, &n.site, &n.provider)
	return n, err
}

// mailVerdict counts the codes by e-mail. Known browsers have the ceiling alone: strangers reach
// the limit below it.
func (s *Store) mailVerdict(ctx context.Context, tx pgx.Tx, a *asked) (Verdict, error) {
	most, err := s.mail.limit(a.now, func() (int, error) { return mailLimit(ctx, tx, a.now, s.cfg.MailPerHour) })
	if err != nil {
		return "", err
	}
	v, err := a.mailFull(ctx, tx, most, s.cfg.MailPerHour)
	if err == nil && v == Sent { // the count without the lock is never too high
		if err = lock(ctx, tx, []byte("service mail")); err == nil {
			v, err = a.mailFull(ctx, tx, most, s.cfg.MailPerHour)
		}
	}
	return v, err
}

// mailFull returns the limit that is reached, or Sent.
func (a *asked) mailFull(ctx context.Context, tx pgx.Tx, most, ceiling int) (Verdict, error) {
	n, err := a.mailCodes(ctx, tx)
	switch {
	case err != nil:
		return "", err
	case n.all >= ceiling, a.known == nil && n.unknown >= most:
		return MailLimit, nil
	case a.known != nil:
		return Sent, nil
	}
	networks := network.Of(a.Client)
	for _, share := range []struct {
		sent, least int
		where       string
		of          any
		v           Verdict
	}{
		{n.domain, most / mailDomain, `domain = $3`, a.domain, MailDomainLimit},
		{n.site, most / mailSite, `domain IS NOT NULL AND site = $3`, networks[network.Site], MailNetworkLimit},
		{n.provider, most / mailProvider, `domain IS NOT NULL AND provider = $3`, networks[network.Provider], MailNetworkLimit},
	} {
		if share.sent < share.least {
			continue
		}
		if busiest, err := busiestHour(ctx, tx, share.where, a.now, share.of); err != nil || share.sent >= provenMultiple*busiest {
			return share.v, err
		}
	}
	return Sent, nil
}

// mailLimit grows with the codes that people enter and shrinks while codes go out that nobody
// enters.
func mailLimit(ctx context.Context, db querier, now time.Time, ceiling int) (int, error) {
	busiest, err := busiestHour(ctx, db, `domain IS NOT NULL`, now)
	if err != nil {
		return 0, err
	}
	most := max(mailLeast, provenMultiple*busiest)
	var decided, entered int
	err = db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE entered OR at <= $2), count(*) FILTER (WHERE entered)
		FROM sign_in_requests WHERE domain IS NOT NULL AND sent AND known IS NULL AND at > $1`, now.Add(-time.Hour), now.Add(-CodeLifetime)).Scan(&decided, &entered)
	if decided >= mailSample && entered*mailEntered < decided {
		most = max(mailLeast/2, most/mailShrink)
	}
	return min(ceiling, most), err
}

// mailStopped reports whether the limit of the whole service is reached.
func mailStopped(ctx context.Context, db querier, now time.Time, ceiling int) (bool, error) {
	var sent int
	most, err := mailLimit(ctx, db, now, ceiling)
	if err == nil {
		err = db.QueryRow(ctx, `SELECT count(*) FROM sign_in_requests WHERE domain IS NOT NULL AND sent AND known IS NULL AND at > $1`, now.Add(-time.Hour)).Scan(&sent)
	}
	return sent >= most, err
}
