package notify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"quittance/internal/provider"
)

// Kind describes the messages of one kind: their texts, and how they are sent.
type Kind struct {
	// Name is in records and metrics, so it never changes.
	Name string
	// Version is the version of its texts that new messages have, from 1.
	Version int
	// Channels are the channels that it has texts for.
	Channels []provider.Channel
	// Variables are the names that every message must give. Samples has a long value for
	// each, with which the texts are checked.
	Variables []string
	Samples   map[string]string
	// InEmail are further variables, which only e-mails have. Their samples are in Samples.
	// A value may have several lines, and up to 8000 bytes.
	InEmail []string
	// OneSegment promises that its SMS fits into one segment.
	OneSegment bool
	// Life is the time from the message's own after which it is worthless: it is never sent
	// then. Zero: it has no end.
	Life time.Duration
	// Once sends a message at most once: never after a time-out, and never when a worker died
	// between the call and its record. It is made again only after a definite refusal. It
	// needs a Life of at most a day. Otherwise a message is sent at least once.
	Once bool
	// Money makes a message wait when its address has had as many messages as it may get:
	// those about money, and digests of staff. Without it such a message lapses. Neither holds
	// for a kind with Once.
	Money bool
	// Unbound messages are to staff about what they decide. The limits of addresses do not bind them, and they do not count
	// there: otherwise many messages about one thing would delay the one about another that somebody wants unseen.
	Unbound bool
	// OfPayment makes a message lapse when the money of its session was given back meanwhile.
	OfPayment bool
	// Retries are the delays before the second attempt and those after it. When they are used
	// up the message is given up.
	Retries []time.Duration
	// RetryWithin bounds the beginning of the last attempt, from the beginning of the first.
	// Zero: only Retries and Life bound it.
	RetryWithin time.Duration
}

// SignInCode is the kind of codes with which people sign in (docs/design/citizen.md). Its variable is
// "code". It is sent at once and worthless after ten minutes. It is submitted once more,
// within 60 s, after a definite refusal that may pass, and never after a time-out.
var SignInCode = Kind{
	Name: "sign_in_code", Version: 1, Channels: []provider.Channel{provider.ChannelSMS, provider.ChannelEmail},
	Variables: []string{VariableCode}, Samples: map[string]string{VariableCode: "123456"}, OneSegment: true,
	Life: 10 * time.Minute, Once: true, Retries: []time.Duration{5 * time.Second}, RetryWithin: time.Minute,
}

// NewLink is the kind of messages to the holders of a reference when another account is linked
// to it (docs/design/citizen.md). Its variables are the name of the "agency" and the masked reference,
// "subject".
var NewLink = Kind{
	Name: "new_link", Version: 1, Channels: []provider.Channel{provider.ChannelSMS, provider.ChannelEmail},
	Variables: []string{VariableAgency, VariableSubject},
	Samples:   map[string]string{VariableAgency: "Direction generale des impots et des domaines", VariableSubject: "***1001"},
	Life:      3 * 24 * time.Hour, Retries: []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour},
}

// NewPasskey is the kind of messages to the owner of an account that has a new passkey. It has
// no variables.
var NewPasskey = Kind{
	Name: "new_passkey", Version: 1, Channels: []provider.Channel{provider.ChannelSMS, provider.ChannelEmail},
	Life: 3 * 24 * time.Hour, Retries: NewLink.Retries,
}

// PasskeyRemoved is the kind of messages to the owner of an account whose passkey was removed.
// It has no variables.
var PasskeyRemoved = Kind{
	Name: "passkey_removed", Version: 1, Channels: []provider.Channel{provider.ChannelSMS, provider.ChannelEmail},
	OneSegment: true, Life: NewPasskey.Life, Retries: NewPasskey.Retries,
}

// moneyRetries are the delays of messages about money (docs/design/documents.md, "Notifications"). Such a
// message is worth sending for two days.
var moneyRetries = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour}

const moneyLife = 48 * time.Hour

// aboutMoney returns a kind of messages about the money of a session. "object" says in a few words
// what was to be paid. An e-mail has "details", lines of what was to be paid with the dossier
// number, and "contact", lines of how to reach the agency.
func aboutMoney(name string) Kind {
	return Kind{
		Name: name, Version: 2, Channels: []provider.Channel{provider.ChannelSMS, provider.ChannelEmail},
		Variables: []string{VariableAgency, VariableAmount, VariableDate, VariableReference, VariableObject}, InEmail: []string{VariableDetails, VariableContact},
		Samples: map[string]string{
			VariableAgency: "Direction generale des impots et des domaines", VariableAmount: "9 007 199 254 740 991 FCFA",
			VariableDate: "30/11/2026 15:32", VariableReference: "4821 0937 5561 2048", VariableObject: "Contribution de la patente, exercice 2...",
			VariableDetails: "Objet : Contribution de la patente, exercice 2026\nNuméro de dossier : 2026-0001",
			VariableContact: "Direction générale des impôts\nAvenue de l’Indépendance, Brazzaville\nTéléphone : +242 22 000 00 00\nCourriel : contact@impots.example",
		},
		Life: moneyLife, Money: true, Retries: moneyRetries,
	}
}

// Receipt is the kind of messages that a payment was received, with the page of its receipt.
// Its variable "session" is the id of that page.
var Receipt = func() Kind {
	k := aboutMoney("receipt")
	k.Variables = append(k.Variables, VariableSession)
	k.OfPayment = true
	k.Samples[VariableSession] = "chs_06gc8k3c0000e080000000000000000000000006viiai3af5"
	return k
}()

// Reversed is the kind of messages that a received payment was given back, so that its receipt
// is worth nothing. PartlyReversed is that of a part of one: the money of some dues. Refunded is
// that of money that completed no session and was given back.
var (
	Reversed       = aboutMoney("payment_reversed")
	PartlyReversed = aboutMoney("payment_partly_reversed")
	Refunded       = aboutMoney("payment_refunded")
)

// DueReminder is the kind of reminders before the due date of dues (docs/design/documents.md,
// "Notifications"), which citizens choose in the portal. Its variables are the number of dues,
// "count"; their sum, "amount"; the first due date, "date"; and the short name of the agency,
// "agency". An e-mail has the list of "dues". A reminder is worth nothing after some hours,
// because the dues may be paid meanwhile, and never outside the day: see Message.NotAfter.
var DueReminder = Kind{
	Name: "due_reminder", Version: 2, Channels: []provider.Channel{provider.ChannelSMS, provider.ChannelEmail},
	Variables: []string{VariableCount, VariableAmount, VariableDate, VariableAgency}, InEmail: []string{VariableDues},
	Samples: map[string]string{
		VariableCount: "1", VariableAmount: "9 007 199 254 740 991 FCFA", VariableDate: "30 September 2026", VariableAgency: "Direction generale des impots...",
		VariableDues: "- Contribution de la patente : 9 007 199 254 740 991 FCFA, à payer au plus tard le 30 September 2026\n  Direction generale des impots..., référence ***1001",
	},
	OneSegment: true, Life: 4 * time.Hour, Retries: []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 2 * time.Hour},
}

// StaffDigest is the kind of e-mails that tell a member of staff what waits for a person
// (internal/digests). Each topic has the number of its items and a list, a line an item; "0" and
// "-" for none. "date" is the beginning of the window. A digest waits at the limits of its
// address, because what it says is not said again for a day.
var StaffDigest = Kind{
	Name: "staff_digest", Version: 1, Channels: []provider.Channel{provider.ChannelEmail},
	Variables: []string{VariableDate, VariableCases, VariableCaseList, VariableERPs, VariableERPList, VariableOperators, VariableOperatorList},
	Samples: map[string]string{
		VariableDate: "30/11/2026 15:30", VariableCases: "12", VariableCaseList: "case_0000000000000000000000000000000000000000 (late_payment, impots)\n+ 11",
		VariableERPs: "1", VariableERPList: "impots/live (30/11/2026 15:02)", VariableOperators: "1", VariableOperatorList: "mtn/live (30/11/2026 15:02)",
	},
	Life: 24 * time.Hour, Money: true, Retries: []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour},
}

// StaffAdded is the kind of e-mails that tell staff at once that people were made on the command line for a group that
// has had people before (docs/design/decisions.md). "people" is a list, a line a person; "date" is when they
// may be approved.
var StaffAdded = Kind{
	Name: "staff_added", Version: 1, Channels: []provider.Channel{provider.ChannelEmail},
	Variables: []string{VariableDate}, InEmail: []string{VariablePeople},
	Samples: map[string]string{VariableDate: "30/11/2026 15:30", VariablePeople: "Mireille Okemba (impots) - 018f0000-0000-7000-8000-0000000000aa"},
	Life:    24 * time.Hour, Money: true, Retries: StaffDigest.Retries,
}

// StaffPasskeys is the kind of e-mails that tell those who manage the people of a group at once that somebody has passkeys now
// (docs/design/staff.md). "people" is a list, a line a person; "date" is when the passkeys begin to approve.
var StaffPasskeys = Kind{
	Name: "staff_passkeys", Version: 1, Channels: []provider.Channel{provider.ChannelEmail},
	Variables: []string{VariableDate}, InEmail: []string{VariablePeople},
	Samples: StaffAdded.Samples, Life: 24 * time.Hour, Money: true, Retries: StaffDigest.Retries,
}

// StaffOutage is the kind of e-mails that tell the people of a group at once that passkeys alone sign in until "date", because
// their identity provider is away (docs/design/staff.md). "issuers" is a list, a line an identity provider.
var StaffOutage = Kind{
	Name: "staff_outage", Version: 1, Channels: []provider.Channel{provider.ChannelEmail},
	Variables: []string{VariableDate}, InEmail: []string{VariableIssuers},
	Samples: map[string]string{VariableDate: "30/11/2026 15:30", VariableIssuers: "idp.example.org (impots)"},
	Life:    24 * time.Hour, Money: true, Retries: StaffDigest.Retries,
}

// PeriodClosed is the kind of e-mails that tell an agency that a period of an account was closed, with the "statement"
// that is signed (docs/design/reconciliation.md § "Signed closes"), its "signature" and the id of its "key", and some of
// it in readable form: the number of rows ("count") under the "root", new, matched and open money, and open breaks.
var PeriodClosed = Kind{
	Name: "period_closed", Version: 1, Channels: []provider.Channel{provider.ChannelEmail},
	Variables: []string{VariableAgency, VariableAccount, VariableDate, VariableCount, VariableRoot, VariableAmount, VariableMatched, VariableOpen, VariableBreaks, VariableSignature, VariableKey},
	InEmail:   []string{VariableStatement},
	Samples: map[string]string{
		VariableAgency: "Direction générale des impôts et des domaines", VariableAccount: "mtn", VariableDate: "01/11/2026 - 30/11/2026", VariableCount: "1234567",
		VariableRoot: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", VariableAmount: "9 007 199 254 740 991 FCFA", VariableMatched: "9 007 199 254 740 990 FCFA",
		VariableOpen: "1 FCFA", VariableBreaks: "12", VariableKey: "2026-11",
		VariableSignature: "5VZDAMNhfTsbGZDcBQCWvJPbA5qDkGfXvGbI1jN0k1uIj2SYU6sn3cE0cDrQ0p3rF4pT4h8Jx5nL9Wb1s7a8DA==",
		VariableStatement: "quittance-close 1\nclose cls_00\nat 2026-11-30T22:00:00.000Z",
	},
	Life: 7 * 24 * time.Hour, Money: true, Retries: []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 48 * time.Hour},
}

// aboutBatch returns a kind of e-mails to staff about a disbursement batch (docs/design/disbursement.md, "Webhooks and
// notices"): its id ("batch") and its agency's "reference", the "count" of its lines and their sum ("amount"). None says
// anything of a payee.
func aboutBatch(name string, more ...string) Kind {
	return Kind{
		Name: name, Version: 1, Channels: []provider.Channel{provider.ChannelEmail},
		Variables: append([]string{VariableAgency, VariableBatch, VariableReference, VariableCount, VariableAmount}, more...),
		Samples:   batchSamples(more...), Life: 3 * 24 * time.Hour, Unbound: true, Retries: StaffDigest.Retries,
	}
}

// batchSamples returns the samples of a kind about a batch with further variables.
func batchSamples(more ...string) map[string]string {
	all := map[string]string{
		VariableDate: "30/11/2026 15:30", VariableReason: "a person or a passkey of its approvers was revoked", VariableAccount: "mtn",
		VariableDetails: "Lignes payées : 99 999 (9 007 199 254 740 990 FCFA)\nLignes refusées : 1 (1 FCFA)",
	}
	out := map[string]string{
		VariableAgency: "Direction générale des impôts et des domaines", VariableBatch: "dsb_06gvsbc8s8005g6dk23laobls1sakuhnf3qrqno0000000000", VariableReference: "SALAIRES-2026-11",
		VariableCount: "100000", VariableAmount: "9 007 199 254 740 991 FCFA",
	}
	for _, name := range more {
		out[name] = all[name]
	}
	return out
}

// The kinds of what staff are told of batches. BatchToApprove goes to those whose approval a batch waits for, until "date".
// The others go to whoever prepared the batch and to those whom the agency's policy names; BatchHeld, with its "reason",
// also to approvers when the service holds the batch. BatchDone has "details", a line for each status of lines.
// BatchUnfunded says that a payout "account" pays nothing for want of funds, BatchAccountClosed that an operator refuses the
// settings of one, with its code as "reason".
var (
	BatchToApprove = aboutBatch("batch_to_approve", VariableDate)
	BatchApproved  = aboutBatch("batch_approved")
	BatchRejected  = aboutBatch("batch_rejected")
	BatchExpired   = aboutBatch("batch_expired")
	BatchHeld      = aboutBatch("batch_held", VariableReason)
	BatchDone      = aboutBatch("batch_done", VariableDetails)
	BatchUnfunded  = bound(aboutBatch("batch_unfunded", VariableAccount))

	BatchAccountClosed = aboutBatch("batch_account_closed", VariableAccount, VariableReason)
)

// bound returns a kind whose letters the limits of addresses bind: an account that is nearly empty causes them again and again.
func bound(k Kind) Kind {
	k.Unbound = false
	return k
}

// aboutSigning returns a kind of e-mails to those whom an agency's policy names, about a change of who signs or of what is
// demanded.
func aboutSigning(name string, more ...string) Kind {
	k := Kind{
		Name: name, Version: 1, Channels: []provider.Channel{provider.ChannelEmail}, Variables: append([]string{VariableAgency}, more...),
		Samples: map[string]string{VariableAgency: "Direction générale des impôts et des domaines"}, Life: 3 * 24 * time.Hour, Unbound: true, Retries: StaffDigest.Retries,
	}
	for _, name := range more {
		k.Samples[name] = map[string]string{VariableDate: "30/11/2026 15:30", VariableCount: "12"}[name]
	}
	return k
}

// The kinds of what staff are told of the rules and the people of batches: another policy, with its number ("count"), and
// other people work from "date"; a revocation works at once.
var (
	BatchPolicy  = aboutSigning("batch_policy", VariableCount, VariableDate)
	BatchPeople  = aboutSigning("batch_people", VariableDate)
	BatchRevoked = aboutSigning("batch_revoked")
)

// The variables of the kinds. An amount has its currency; a date is that of Brazzaville.
const (
	VariableCode      = "code"
	VariableAgency    = "agency"
	VariableSubject   = "subject"
	VariableAmount    = "amount"
	VariableDate      = "date"
	VariableReference = "reference"
	VariableSession   = "session"
	VariableCount     = "count"
	VariableDues      = "dues"
	VariableObject    = "object"
	VariableDetails   = "details"
	VariableContact   = "contact"
	// Of StaffDigest.
	VariableCases        = "cases"
	VariableCaseList     = "case_list"
	VariableERPs         = "erps"
	VariableERPList      = "erp_list"
	VariableOperators    = "operators"
	VariableOperatorList = "operator_list"
	// Of StaffAdded and StaffPasskeys.
	VariablePeople = "people"
	// Of StaffOutage.
	VariableIssuers = "issuers"
	// Of kinds about batches.
	VariableBatch  = "batch"
	VariableReason = "reason"
	// Of PeriodClosed.
	VariableAccount   = "account"
	VariableRoot      = "root"
	VariableMatched   = "matched"
	VariableOpen      = "open"
	VariableBreaks    = "breaks"
	VariableStatement = "statement"
	VariableSignature = "signature"
	VariableKey       = "key"
)

// Kinds lists all kinds. A further kind is one line here, and its templates.
func Kinds() []Kind {
	return []Kind{
		SignInCode, NewLink, NewPasskey, PasskeyRemoved, Receipt, Reversed, PartlyReversed, Refunded, DueReminder, StaffDigest, StaffAdded, StaffPasskeys, StaffOutage, PeriodClosed,
		BatchToApprove, BatchApproved, BatchRejected, BatchExpired, BatchHeld, BatchDone, BatchUnfunded, BatchAccountClosed, BatchPolicy, BatchPeople, BatchRevoked,
	}
}

// KindOf finds a kind by its name.
func KindOf(name string) (Kind, bool) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// variables returns the variables that a message of a channel must give.
func (k Kind) variables(channel provider.Channel) []string {
	if channel == provider.ChannelEmail {
		return slices.Concat(k.Variables, k.InEmail)
	}
	return k.Variables
}

// Template returns the name and version of the kind's texts.
func (k Kind) Template() string { return k.Name + "." + strconv.Itoa(k.Version) }

// maxLifeOnce is the greatest Life of a kind with Once: Sends forgets messages after it.
const maxLifeOnce = 24 * time.Hour

// validate returns an error if the kind cannot keep its promises.
func (k Kind) validate() error {
	var errs []error
	if k.Name == "" || k.Version < 1 || len(k.Channels) == 0 {
		errs = append(errs, errors.New("the fields Name, Version and Channels are required"))
	}
	if k.Once && (k.Life <= 0 || k.Life > maxLifeOnce) {
		errs = append(errs, fmt.Errorf("a kind with Once needs a Life of at most %v", maxLifeOnce))
	}
	for _, v := range k.Variables {
		if k.Samples[v] == "" {
			errs = append(errs, fmt.Errorf("there is no sample of %q", v))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("kind of message %q: %w", k.Name, err)
	}
	return nil
}

// NextAttempt returns the time of the attempt after the given one (from 1), which ended at
// now, or false if there is none. first is the beginning of the first attempt, and notAfter
// the end of the message's worth; zero for none. asked is the delay that the provider asks
// for.
func (k Kind) NextAttempt(attempt int, first, now, notAfter time.Time, asked time.Duration) (time.Time, bool) {
	if attempt < 1 || attempt > len(k.Retries) {
		return time.Time{}, false
	}
	next := now.Add(max(k.Retries[attempt-1], asked))
	if k.RetryWithin > 0 && !first.IsZero() && next.After(first.Add(k.RetryWithin)) {
		return time.Time{}, false
	}
	return next, notAfter.IsZero() || next.Before(notAfter)
}
