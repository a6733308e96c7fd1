package airtel

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // Airtel's OAEP uses it
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"quittance/internal/connector"
	"quittance/internal/contact"
)

// payoutsPath is the path of payouts.
const payoutsPath = "/standard/v1/disbursements/"

// usersPath is the path of what Airtel tells of a number.
const usersPath = "/standard/v1/users/"

// PayoutAccount is an agency's application with Airtel from which people are paid.
type PayoutAccount struct {
	connector.BaseURL
	ClientID     string
	ClientSecret string
	// PIN of the account's wallet. It is sent encrypted for PublicKey.
	PIN string
	// PublicKey is Airtel's key of the account: base64 of an X.509 SubjectPublicKeyInfo, as
	// its portal shows it.
	PublicKey string
	// OAEP pads the PIN with OAEP; PKCS #1 v1.5 otherwise. Airtel says which.
	OAEP bool
}

// Fingerprint is of the client id, as that of Account. It is another one: an application of
// both products has two accounts.
func (a PayoutAccount) Fingerprint() string {
	return connector.Fingerprint(Operator+" payouts", "", a.ClientID)
}

// pin returns the encrypted PIN. Its error holds neither PIN nor key.
func (a PayoutAccount) pin() (string, error) {
	der, err := base64.StdEncoding.DecodeString(a.PublicKey)
	if err != nil {
		return "", errPublicKey
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	key, ok := parsed.(*rsa.PublicKey)
	if err != nil || !ok {
		return "", errPublicKey
	}
	var encrypted []byte
	if a.OAEP {
		encrypted, err = rsa.EncryptOAEP(sha1.New(), rand.Reader, key, []byte(a.PIN), nil) //nolint:gosec // as Airtel wants it
	} else {
		encrypted, err = rsa.EncryptPKCS1v15(rand.Reader, key, []byte(a.PIN)) //nolint:staticcheck // as Airtel wants it
	}
	if err != nil {
		return "", errors.New("the PIN cannot be encrypted for the account's public key")
	}
	return base64.StdEncoding.EncodeToString(encrypted), nil
}

var errPublicKey = errors.New("the account's public_key is no RSA key in base64, as Airtel's portal shows it")

// Payouts speaks Airtel Money Disbursements. Safe for concurrent use.
type Payouts struct {
	*connector.Base[PayoutAccount]
}

// NewPayouts makes Payouts.
func NewPayouts(cfg connector.Config) (*Payouts, error) {
	base, err := connector.NewBase(Operator, cfg, func(a PayoutAccount) connector.Call {
		return tokenCall(Account{BaseURL: a.BaseURL, ClientID: a.ClientID, ClientSecret: a.ClientSecret})
	})
	return &Payouts{base}, err
}

// Payee accepts Congolese numbers of Airtel, as Connector.Payer does.
func (p *Payouts) Payee(input string) (string, error) { return contact.MobileOf(input, "05", "04") }

// disbursement is the body of POST /standard/v1/disbursements/.
type disbursement struct {
	Payee struct {
		MSISDN string `json:"msisdn"`
	} `json:"payee"`
	Reference   string `json:"reference"`
	PIN         string `json:"pin"`
	Transaction struct {
		Amount int64  `json:"amount"`
		ID     string `json:"id"`
		Type   string `json:"type"`
	} `json:"transaction"`
}

func toDisbursement(p connector.Payout, id, pin string) ([]byte, error) {
	if p.Currency != currency || p.Amount <= 0 {
		return nil, fmt.Errorf("amount %d %q cannot be paid", p.Amount, p.Currency)
	}
	national, err := nationalOf(p.Payee)
	if err != nil {
		return nil, err
	}
	d := disbursement{Reference: p.PayoutRef, PIN: pin}
	d.Payee.MSISDN, d.Transaction.Amount, d.Transaction.ID, d.Transaction.Type = national, p.Amount, id, "B2C"
	return json.Marshal(d)
}

// nationalOf returns the number of a payee without the calling code.
func nationalOf(payee string) (string, error) {
	national, ok := strings.CutPrefix(payee, "242")
	if !ok {
		return "", fmt.Errorf("the payee's number: %w", contact.ErrNotMobile)
	}
	return national, nil
}

// Pay is POST /standard/v1/disbursements/. The answer may say that the money has moved; an
// answer that says that Airtel knows the id, or a similar payout, is about our own request.
func (p *Payouts) Pay(ctx context.Context, account connector.Account, payout connector.Payout) (connector.PayoutOutcome, error) {
	const doing = "paying out"
	own, err := p.Own(account)
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	id, err := connector.ShortID(payout.ID)
	if err != nil {
		return connector.PayoutOutcome{}, connector.Malformed(doing, err)
	}
	pin, err := own.pin()
	if err != nil {
		return connector.PayoutOutcome{}, &connector.Error{Doing: doing, Fault: connector.FaultCredentials, Err: err}
	}
	body, err := toDisbursement(payout, id, pin)
	if err != nil {
		return connector.PayoutOutcome{}, connector.Malformed(doing, err)
	}
	a, err := p.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodPost, Path: payoutsPath, Body: body, Header: header(payout.CallbackURL)})
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	var e envelope
	if a.Decode(&e) != nil {
		return connector.PayoutOutcome{}, a.Fault(doing, true, "")
	}
	word := e.payoutWord()
	switch {
	case e.any(payoutKnown):
		return connector.PayoutOfKnown(p.EnquirePayout(ctx, account, payout.PayoutReference)), nil
	case a.Status >= 500, a.Status == http.StatusTooManyRequests, a.Status == http.StatusRequestTimeout:
		return connector.PayoutOutcome{}, a.Fault(doing, true, word)
	case word == payoutDone, payoutOpen[word]:
		// The answer to the request is not taken for the payment: the processor's next enquiry says the same. An enquiry here
		// would make all payouts of the operator wait for the enquiries that one account may make.
		return connector.PayoutOutcome{Status: connector.PayoutPending, Reason: word}, nil
	}
	cause, definite := e.payoutRefusal()
	if !definite {
		return connector.PayoutOutcome{}, a.Fault(doing, true, word)
	}
	return connector.PayoutOutcome{Status: connector.PayoutRefused, Cause: cause, Reason: word, Unconfirmed: true}, nil
}

// EnquirePayout is GET /standard/v1/disbursements/{id}, at most EnquiriesPerSecond of an
// account. Answers name neither amount nor payee: an id has those of its first request.
func (p *Payouts) EnquirePayout(ctx context.Context, account connector.Account, ref connector.PayoutReference) (connector.PayoutOutcome, error) {
	const doing = "asking about a payout"
	id, err := connector.ShortID(ref.ID)
	if err != nil {
		return connector.PayoutOutcome{}, connector.Malformed(doing, err)
	}
	own, err := p.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	a, err := p.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: payoutsPath + id + "?transactionType=B2C", Header: header("")})
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	var e envelope
	readable := a.Decode(&e) == nil
	status := e.Data.Transaction.Status
	switch {
	case readable && a.Status < 500 && (status == "" || status == "TF") && e.any(payoutNotFound):
		// Only Airtel's own code means that there is no such payout. A gateway without such a
		// path answers 404 too.
		return connector.PayoutOutcome{Status: connector.PayoutUnknown, Reason: e.payoutWord()}, nil
	case a.Status != http.StatusOK || !readable:
		return connector.PayoutOutcome{}, a.Fault(doing, false, e.payoutWord())
	}
	o, err := toPayoutOutcome(e, id, ref)
	if err != nil {
		return connector.PayoutOutcome{}, connector.Malformed(doing, err)
	}
	return o, nil
}

// CheckPayee is GET /standard/v1/users/{number}.
func (p *Payouts) CheckPayee(ctx context.Context, account connector.Account, payee, name string) (connector.NameVerdict, error) {
	const doing = "asking for a payee's name"
	national, err := nationalOf(payee)
	if err != nil {
		return "", connector.Malformed(doing, err)
	}
	own, err := p.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return "", err
	}
	a, err := p.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: usersPath + url.PathEscape(national), Header: header("")})
	if err != nil {
		return "", err
	}
	var e envelope
	var holder struct {
		Data struct {
			FirstName string `json:"first_name"`
			LastName  string `json:"last_name"`
		} `json:"data"`
	}
	readable := a.Decode(&e) == nil && a.Decode(&holder) == nil
	switch {
	case readable && a.Status < 500 && slices.Contains(e.codes(), userNotFound):
		return connector.NameUnknown, nil
	case a.Status != http.StatusOK || !readable || !e.Status.Success:
		return "", a.Fault(doing, false, e.payoutWord())
	}
	return connector.CompareNames(name, holder.Data.FirstName+" "+holder.Data.LastName), nil
}

// userNotFound says that Airtel Money has no user of a number.
const userNotFound = "DP02200000002"

// toPayoutOutcome reads the answer to an enquiry about the payout that Airtel knows as id.
// Only TS and TF are decisions, and TF with a code that says otherwise is none.
func toPayoutOutcome(e envelope, id string, ref connector.PayoutReference) (connector.PayoutOutcome, error) {
	t, word := e.Data.Transaction, e.payoutWord()
	if t.ID != "" && !strings.EqualFold(string(t.ID), id) {
		return connector.PayoutOutcome{}, errors.New("the answer is about another payout")
	}
	o := connector.PayoutOutcome{OperatorRef: string(t.AirtelMoneyID), Reason: word}
	switch t.Status {
	case "TS":
		o.Status, o.Amount, o.Currency = connector.PayoutPaid, ref.Amount, ref.Currency
	case "TF":
		if e.any(payoutOpen) || slices.Contains(e.codes(), payoutDone) || e.any(payoutKnown) && !slices.Contains(e.codes(), similar) {
			o.Status = connector.PayoutPending
			break
		}
		o.Status = connector.PayoutRefused
		cause, proven := e.payoutRefusal()
		if o.Cause, o.Unproven = cause, !proven; !proven {
			o.Cause = connector.CauseOperator
		}
	case "TIP", "TA":
		o.Status = connector.PayoutPending
	default:
		return connector.PayoutOutcome{}, fmt.Errorf("unknown status %q", code(t.Status))
	}
	return o, nil
}

// payoutDone says that the money has moved.
const payoutDone = "DP00900001001"

// similar says that Airtel has made a payout that is like this one: this one, or another.
const similar = "DP00900001011"

// payoutOpen lists codes that decide nothing, whatever the status.
var payoutOpen = map[string]bool{"DP00900001000": true, "DP00900001006": true, "DP00900001014": true}

// payoutKnown lists codes that mean that Airtel has a payout of this id, or one that is like
// it. Only an enquiry tells.
var payoutKnown = map[string]bool{similar: true, "DP00900001017": true, "ESB000041": true}

// payoutNotFound lists codes that mean that Airtel has no payout of this id.
var payoutNotFound = map[string]bool{"DP00900001015": true, "ESB000045": true}

// payoutRefusals are Airtel's reasons not to pay somebody. DP00900001005, DP00900001011 and
// codes that are missing here are no proof that nobody was paid.
var payoutRefusals = map[string]connector.PayoutCause{
	"DP00900001007": connector.CauseFunds,
	"DP00900001003": connector.CausePayeeOrAccount, // a limit of the day, without saying whose
	"DP00900001010": connector.CausePayeeOrAccount, // a user who is not allowed, without saying which
	"DP00900001004": connector.CausePayee,          // the amount is out of range
	"DP00900001009": connector.CausePayee,
	"DP00900001012": connector.CausePayee,
	"DP00900001013": connector.CausePayee,
	"ESB000033":     connector.CausePayee,
	"ESB000036":     connector.CausePayee,
	// Of the gateway: the account, its PIN, its country or its currency.
	"ROUTER001": connector.CauseAccount,
	"ROUTER005": connector.CauseAccount,
	"ROUTER006": connector.CauseAccount,
	"ROUTER007": connector.CauseAccount,
	"ROUTER112": connector.CauseAccount,
	"ROUTER115": connector.CauseAccount,
	"ROUTER116": connector.CauseAccount,
	"ROUTER119": connector.CauseAccount,
}

// payoutWord returns the code of an answer about a payout: the first that has a meaning, or
// else the first.
func (e *envelope) payoutWord() string {
	codes := e.codes()
	for _, c := range codes {
		if _, ok := payoutRefusals[c]; ok || c == payoutDone || payoutOpen[c] || payoutKnown[c] || payoutNotFound[c] {
			return c
		}
	}
	return append(codes, "")[0]
}

// payoutRefusal returns the cause of a refusal; false if it proves nothing. The codes of the payout
// itself, which begin with DP, decide: a code of the gateway beside one that is not known says
// nothing about the money. Without them the first code decides.
func (e *envelope) payoutRefusal() (cause connector.PayoutCause, proven bool) {
	codes := e.codes()
	own := slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return !strings.HasPrefix(c, "DP") })
	if len(own) == 0 {
		own = append(codes, "")[:1]
	}
	for _, c := range own {
		if _, known := payoutRefusals[c]; !known {
			return "", false
		}
	}
	return payoutRefusals[own[0]], true
}

// simulatedKey is a public key whose private key nobody has: the simulator looks at the form
// of the PIN alone.
const simulatedKey = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA10KSacoXegbxmDTnC2QElK2qka4XCvb3LMga7sxUhbvfsQleZwuwBL2vCoq5hbJL3jpobHOBGZW5JOo3ZR1l7LunP0POojyvbXJiQmWVIBmS/ovh+NyKHAqBaMrG0Ph+z13f9ivyVTB7/fVXghEUpTKTHeEX/TsnoqV7P48iusdt4DLwjOR/HCwwoIhr9zUxgvCLFBDr471w7Lt3bU/TY6LIPsbTe0mvGPFo2n6pFpsQZmuzpRJy7GKVf8/PCeiDrHZ9C7lHWlMdvlCeWdEKT2sOGIfPGIM7J8OuUYmsca28yzzMiubOT7r7fwlZLwIBpuzq1B4RBLqFmvqh93zd8QIDAQAB"
