package citizen

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/checkout"
	"quittance/internal/citizens"
	"quittance/internal/erp"
	"quittance/money/localtime"
)

// DuesRequest selects links of the account. Empty fields select all.
type DuesRequest struct {
	TenantID, SubjectRef string
	// Shown says that the person sees the answer: a checkout may rely on it that does not say
	// what was shown.
	Shown bool
}

// PaymentState says whether a due can be paid.
type PaymentState string

// The states. A due in payment has a payment under way; one that is being recorded is paid,
// and its agency's system does not show it yet; a paid one has nothing left.
const (
	Payable   PaymentState = "payable"
	InPayment PaymentState = "in_payment"
	Recording PaymentState = "recording"
	Paid      PaymentState = "paid"
)

// Due is a due of a linked reference.
type Due struct {
	Link Link
	erp.Due
	State   PaymentState
	Overdue bool
	// Own is the open session of this account that pays the due; nil for none.
	Own *checkout.Session
	// Untaken says that no means of payment of the agency takes the due's currency now.
	Untaken bool
	// Replaceable says that a new cart may take the due from open sessions
	// (CheckoutRequest.Replace).
	Replaceable bool
}

// RefusedDue is an item of an ERP's answer that cannot be shown.
type RefusedDue struct {
	Link Link
	erp.Refused
}

// Source is an agency's ERP, asked about one reference.
type Source struct {
	Link   Link
	Status erp.SourceStatus
	// AsOf is the time of the ERP's answer; of an ERP that is unavailable, that of the last
	// good one; zero for none.
	AsOf time.Time
}

// NoSource is the status of a list without links: no ERP was asked, so that nobody knows what is
// owed.
const NoSource erp.SourceStatus = "none"

// DueList is what an account owes. Nothing is owed only where Status is erp.SourceOK.
type DueList struct {
	Sources []Source
	// Dues are grouped by agency, those with the earliest due date first.
	Dues    []Due
	Refused []RefusedDue
}

// Status is erp.SourceOK if every ERP has answered, and NoSource if there is none to ask.
func (l DueList) Status() erp.SourceStatus {
	if len(l.Sources) == 0 {
		return NoSource
	}
	if slices.ContainsFunc(l.Sources, func(s Source) bool { return s.Status != erp.SourceOK }) {
		return erp.SourceUnavailable
	}
	return erp.SourceOK
}

// away reports whether an agency's ERP does not tell what a reference owes.
func (l DueList) away(agencyID, subjectRef string) bool {
	return slices.ContainsFunc(l.Sources, func(s Source) bool {
		return s.Link.Agency.ID == agencyID && s.Link.SubjectRef == subjectRef && s.Status != erp.SourceOK
	})
}

// AsOf is the time of the oldest answer; zero if a source has none.
func (l DueList) AsOf() (oldest time.Time) {
	for i, s := range l.Sources {
		if i == 0 || s.AsOf.Before(oldest) {
			oldest = s.AsOf
		}
	}
	return oldest
}

// sourcesAtOnce is how many ERPs and subjects one request asks at the same time.
const sourcesAtOnce = 16

// answered is what the ERP said about one reference. PulledAt is just before the call.
type answered struct {
	link     Link
	pulledAt time.Time
	erp.Answer
}

// from is the latest moment of which the answer surely tells: a shared answer is older than
// the call.
func (a answered) from() time.Time {
	if a.AsOf.Before(a.pulledAt) {
		return a.AsOf
	}
	return a.pulledAt
}

// Dues returns the dues of the account's links as the ERPs state them now. A request that
// selects no link of the account is refused with citizen.link_not_found.
func (s *Service) Dues(ctx context.Context, who Visitor, q DuesRequest) (DueList, error) {
	links, err := s.linksOf(ctx, who.ID)
	if err != nil {
		return DueList{}, err
	}
	links = slices.DeleteFunc(links, func(l Link) bool {
		return q.TenantID != "" && l.Agency.ID != q.TenantID || q.SubjectRef != "" && l.SubjectRef != q.SubjectRef
	})
	if len(links) == 0 && (q.TenantID != "" || q.SubjectRef != "") {
		return DueList{}, refused(CodeLinkNotFound)
	}
	answers, err := s.pull(ctx, links, s.cfg.Dues.List)
	if err != nil {
		return DueList{}, err
	}
	list, err := s.listOf(ctx, who, answers)
	if err != nil || !q.Shown {
		return list, err
	}
	return list, s.remember(ctx, who, answers)
}

// pull asks the ERPs about links, at the same time, with Dues.List or Dues.Fresh.
func (s *Service) pull(ctx context.Context, links []Link, ask func(ctx context.Context, agencyID string, live bool, subjectRef string) (erp.Answer, error)) ([]answered, error) {
	answers := make([]answered, len(links))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sourcesAtOnce)
	for i, l := range links {
		group.Go(func() error {
			a := answered{link: l, pulledAt: s.now(), Answer: erp.Answer{Status: erp.SourceUnavailable}}
			if portal, ok := s.cfg.Registry.PortalOf(l.Agency.ID); ok && portal.Active {
				var err error
				a.Answer, err = ask(ctx, l.Agency.ID, s.cfg.Live, l.SubjectRef)
				switch {
				case errors.Is(err, erp.ErrNoERP), errors.Is(err, erp.ErrReference): // nobody can tell what is owed
					a.Answer = erp.Answer{Status: erp.SourceUnavailable}
				case err != nil:
					return err
				case a.Status != erp.SourceOK:
					s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "citizens: an agency's ERP does not tell what is owed", slog.String("agency", l.Agency.Slug), slog.String("reason", a.Reason))
				}
			}
			answers[i] = a
			return nil
		})
	}
	return answers, group.Wait()
}

// remember keeps what the session saw, for a checkout that does not say what was shown.
func (s *Service) remember(ctx context.Context, who Visitor, answers []answered) error {
	for _, a := range answers {
		if a.Status != erp.SourceOK {
			continue
		}
		saw := make([]citizens.Due, len(a.Dues))
		for i, d := range a.Dues {
			saw[i] = seenOf(d)
		}
		if err := s.cfg.Citizens.Saw(ctx, who.session, s.subject(a.link), saw); err != nil {
			return err
		}
	}
	return nil
}

func seenOf(d erp.Due) citizens.Due {
	return citizens.Due{Ref: d.Ref, Outstanding: d.Outstanding, Currency: d.Currency}
}

func (s *Service) subject(l Link) citizens.Subject {
	return citizens.Subject{AgencyID: l.Agency.ID, Live: s.cfg.Live, Ref: l.SubjectRef}
}

// listOf returns answers with what payments make of their dues.
func (s *Service) listOf(ctx context.Context, who Visitor, answers []answered) (list DueList, err error) {
	refs := map[string][]string{} // by agency
	for _, a := range answers {
		for _, d := range a.Dues {
			refs[a.link.Agency.ID] = append(refs[a.link.Agency.ID], d.Ref)
		}
	}
	claimed := map[string]claims{}
	for agencyID, of := range refs {
		sessions, err := s.cfg.Sessions.Claimants(ctx, agencyID, s.cfg.Live, of)
		if err != nil {
			return DueList{}, err
		}
		claimed[agencyID] = claimsOf(sessions)
	}
	now := localtime.In(s.cfg.Now())
	for _, a := range answers {
		list.Sources = append(list.Sources, Source{Link: a.link, Status: a.Status, AsOf: a.AsOf})
		for _, d := range a.Dues {
			due := Due{Link: a.link, Due: d, Overdue: d.Overdue(now), Untaken: !s.takes(a.link.Agency.ID, d.Currency)}
			of := claimed[a.link.Agency.ID][d.Ref]
			due.settle(of, who.ID, a.from())
			list.Dues = append(list.Dues, due)
		}
		for _, r := range a.Refused {
			list.Refused = append(list.Refused, RefusedDue{a.link, r})
		}
	}
	slices.SortStableFunc(list.Dues, func(a, b Due) int {
		return cmp.Or(strings.Compare(a.Link.Agency.Name, b.Link.Agency.Name), strings.Compare(a.Link.Agency.ID, b.Link.Agency.ID), a.before(b))
	})
	return list, nil
}

// takes reports whether the agency's portal has a means of payment that takes the currency now.
func (s *Service) takes(agencyID, currency string) bool {
	portal, ok := s.cfg.Registry.PortalOf(agencyID)
	return ok && slices.ContainsFunc(portal.Offering(), func(offer string) bool {
		return s.offers(agencyID, offer, currency) && s.cfg.Registry.HasChannel(agencyID, s.cfg.Live, offer, currency)
	})
}

// offers reports whether an offer takes the currency, and the agency's ERP confirmations by its channel.
func (s *Service) offers(agencyID, offer, currency string) bool {
	channel, _ := checkout.OfferChannel(offer)
	erp, _ := s.cfg.Registry.ERP(agencyID, s.cfg.Live)
	return s.cfg.Registry.Takes(agencyID, s.cfg.Live, offer, currency) && erp.Knows(channel)
}

// before compares due dates. Dues without one come last.
func (d Due) before(other Due) int {
	if d.DueDate.IsZero() != other.DueDate.IsZero() {
		return map[bool]int{true: 1, false: -1}[d.DueDate.IsZero()]
	}
	return d.DueDate.Compare(other.DueDate)
}

// claim is what a session says of a due.
type claim struct {
	session checkout.Session
	item    checkout.Item
}

// claims are those of an agency's dues, by their references.
type claims map[string][]claim

func claimsOf(sessions []checkout.Session) claims {
	out := claims{}
	for _, session := range sessions {
		for _, item := range session.Dues() {
			out[item.ERPDueRef] = append(out[item.ERPDueRef], claim{session, item})
		}
	}
	return out
}

func sessionsOf(claims []claim) []checkout.Session {
	out := make([]checkout.Session, len(claims))
	for i, c := range claims {
		out[i] = c.session
	}
	return out
}

// settle sets what the sessions that claim the due, or have paid it, make of it.
func (d *Due) settle(claims []claim, citizenID string, pulledAt time.Time) {
	if d.Paid() {
		d.State = Paid
		return
	}
	d.State = PaymentState(checkout.DueStateOf(sessionsOf(claims), d.Ref, pulledAt, d.Outstanding))
	d.Replaceable = d.State == InPayment
	for _, c := range claims {
		if c.session.DueState(c.item) != checkout.DueInPayment {
			continue
		}
		open := c.session.Portal() && c.session.Status == checkout.StatusOpen
		d.Replaceable = d.Replaceable && open && c.session.Collection == nil
		if open && c.session.CitizenID == citizenID {
			d.Own = &c.session
		}
	}
}
