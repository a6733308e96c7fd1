package citizen

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/citizens"
	"quittance/internal/erp"
	"quittance/internal/form"
)

// dueJSON is a due as the ERP states it, with what payments make of it.
type dueJSON struct {
	TenantID        string  `json:"tenant_id"`
	AgencyName      *string `json:"agency_name"`
	SubjectRef      string  `json:"subject_ref"`
	ERPDueRef       string  `json:"erp_due_ref"`
	Label           string  `json:"label"`
	Amount          int64   `json:"amount_minor"`
	Outstanding     int64   `json:"outstanding_minor"`
	Original        int64   `json:"original_minor"`
	Currency        string  `json:"currency"`
	AllowPartial    bool    `json:"allow_partial"`
	Minimum         *int64  `json:"minimum_amount_minor"`
	RevenueLineCode *string `json:"revenue_line_code"`
	DueDate         *string `json:"due_date"`
	Overdue         bool    `json:"overdue"`
	ServiceID       *string `json:"service_id"`
	ServiceCode     *string `json:"service_code"`
	ServiceLabel    *string `json:"service_label"`
	PaymentState    string  `json:"payment_state"`
	// CheckoutURL leads to the account's own open session that pays the due.
	CheckoutURL *string `json:"checkout_url"`
	Replaceable bool    `json:"replaceable"`
}

func (s *Service) toDueJSON(d Due) dueJSON {
	out := dueJSON{
		TenantID: d.Link.Agency.ID, AgencyName: text(d.Link.Agency.Name), SubjectRef: d.Link.SubjectRef,
		ERPDueRef: d.Ref, Label: d.Label, Amount: d.Amount, Outstanding: d.Outstanding, Original: d.Original, Currency: d.Currency,
		AllowPartial: d.AllowPartial, RevenueLineCode: text(d.RevenueLine), Overdue: d.Overdue,
		ServiceID: text(d.Service.ID), ServiceCode: text(d.Service.Code), ServiceLabel: text(d.Service.Label),
		PaymentState: string(d.State), Replaceable: d.Replaceable,
	}
	if d.AllowPartial {
		out.Minimum = &d.Minimum
	}
	if !d.DueDate.IsZero() {
		out.DueDate = text(d.DueDate.Format(time.DateOnly))
	}
	if d.Own != nil {
		out.CheckoutURL = text(s.CheckoutURL(*d.Own))
	}
	return out
}

// refusedJSON is an item of an ERP's answer that breaks the contract.
type refusedJSON struct {
	TenantID   string       `json:"tenant_id"`
	SubjectRef string       `json:"subject_ref"`
	Position   int          `json:"position"`
	ERPDueRef  *string      `json:"erp_due_ref"`
	Label      *string      `json:"label"`
	Errors     []form.Fault `json:"errors"`
}

// sourceJSON is an ERP, asked about one reference.
type sourceJSON struct {
	TenantID     string  `json:"tenant_id"`
	AgencyName   *string `json:"agency_name"`
	SubjectRef   string  `json:"subject_ref"`
	SourceStatus string  `json:"source_status"`
	AsOf         *string `json:"as_of"`
}

type duesJSON struct {
	Items        []dueJSON     `json:"items"`
	Refused      []refusedJSON `json:"refused"`
	Sources      []sourceJSON  `json:"sources"`
	SourceStatus string        `json:"source_status"`
	AsOf         *string       `json:"as_of"`
}

func dues(c *call) (int, any, error) {
	q, err := query(c.r, "tenant_id", "subject_ref")
	if err != nil {
		return 0, nil, err
	}
	list, err := c.Dues(c.r.Context(), c.who, DuesRequest{TenantID: q["tenant_id"], SubjectRef: q["subject_ref"], Shown: c.ShownToPerson(c.r)})
	if err != nil {
		return 0, nil, err
	}
	out := duesJSON{Items: []dueJSON{}, Refused: []refusedJSON{}, Sources: []sourceJSON{}, SourceStatus: string(list.Status()), AsOf: moment(list.AsOf())}
	for _, d := range list.Dues {
		out.Items = append(out.Items, c.toDueJSON(d))
	}
	for _, r := range list.Refused {
		out.Refused = append(out.Refused, refusedJSON{
			TenantID: r.Link.Agency.ID, SubjectRef: r.Link.SubjectRef, Position: r.Position, ERPDueRef: text(r.Ref), Label: text(r.Label), Errors: r.Faults,
		})
	}
	for _, s := range list.Sources {
		out.Sources = append(out.Sources, sourceJSON{
			TenantID: s.Link.Agency.ID, AgencyName: text(s.Link.Agency.Name), SubjectRef: s.Link.SubjectRef, SourceStatus: string(s.Status), AsOf: moment(s.AsOf),
		})
	}
	return http.StatusOK, out, nil
}

// sessionJSON is a session of the account, as the ministry API has it, with its dues.
type sessionJSON struct {
	ID          string     `json:"id"`
	OrderID     string     `json:"order_id"`
	TenantID    string     `json:"tenant_id"`
	AgencyName  *string    `json:"agency_name"`
	Amount      int64      `json:"amount"`
	Currency    string     `json:"currency"`
	Status      string     `json:"status"`
	Paid        bool       `json:"paid"`
	PaymentRef  string     `json:"payment_ref"`
	CheckoutURL string     `json:"checkout_url"`
	ExpiresAt   string     `json:"expires_at"`
	Items       []itemJSON `json:"items"`
}

type itemJSON struct {
	ERPDueRef     string  `json:"erp_due_ref"`
	SubjectRef    string  `json:"subject_ref"`
	Label         string  `json:"label"`
	ServiceCode   *string `json:"service_code"`
	ServiceLabel  *string `json:"service_label"`
	Amount        int64   `json:"amount_minor"`
	Partial       bool    `json:"partial"`
	TransactionID string  `json:"transaction_id"`
	NoticeRef     string  `json:"notice_ref"`
}

func toItemJSON(it checkout.Item) itemJSON {
	return itemJSON{
		ERPDueRef: it.ERPDueRef, SubjectRef: it.SubjectRef, Label: it.Label, ServiceCode: text(it.ServiceCode), ServiceLabel: text(it.ServiceLabel),
		Amount: it.Amount, Partial: it.Partial(), TransactionID: it.TransactionID, NoticeRef: it.NoticeRef,
	}
}

func (c *call) toSessionJSON(s checkout.Session) sessionJSON {
	agency, _ := c.cfg.Registry.Agency(s.TenantID)
	out := sessionJSON{
		ID: s.ID, OrderID: s.OrderID, TenantID: s.TenantID, AgencyName: text(agency.Name), Amount: s.Amount, Currency: s.Currency,
		Status: string(s.Status), Paid: s.Paid(), PaymentRef: s.PaymentRef, CheckoutURL: c.CheckoutURL(s), ExpiresAt: timestamp(s.ExpiresAt), Items: []itemJSON{},
	}
	for _, it := range s.Items {
		out.Items = append(out.Items, toItemJSON(it))
	}
	return out
}

func pay(c *call) (int, any, error) {
	keys := c.r.Header.Values("Idempotency-Key")
	switch len(keys) {
	case 0:
		return 0, nil, problem.New("idempotency.key_required")
	case 1:
	default:
		return 0, nil, problem.New("idempotency.key_invalid")
	}
	q := CheckoutRequest{IdempotencyKey: keys[0]}
	c.form.Objects("items", func(f *form.Form) {
		it := CheckoutItem{TenantID: f.UUID("tenant_id", false), SubjectRef: subjectRef(f, false), ERPDueRef: f.Text("erp_due_ref", true, 1, erp.MaxReference)}
		it.Amount = f.Integer("amount_minor", 1, form.MaxAmount)
		it.Outstanding = f.Integer("outstanding_minor", 0, form.MaxAmount)
		it.Currency = f.Text("currency", false, 3, 3)
		q.Items = append(q.Items, it)
	})
	if replace := c.form.Bool("replace"); replace != nil {
		q.Replace = *replace
	}
	q.SuccessURL, q.CancelURL = c.form.Text("success_url", false, 1, maxURL), c.form.Text("cancel_url", false, 1, maxURL)
	if err := c.form.Err(); err != nil {
		return 0, nil, err
	}
	cart, err := c.Checkout(c.r.Context(), c.who, q)
	if err != nil {
		return 0, nil, err
	}
	if cart.Replayed {
		c.w.Header().Set("Idempotent-Replayed", "true")
		cart.Session.Status = checkout.StatusOpen // a replay repeats the first answer
	}
	return http.StatusCreated, c.toSessionJSON(cart.Session), nil
}

// paymentJSON is what the account paid at once.
type paymentJSON struct {
	SessionID   string            `json:"session_id"`
	TenantID    string            `json:"tenant_id"`
	AgencyName  *string           `json:"agency_name"`
	PaymentRef  string            `json:"payment_ref"`
	Amount      int64             `json:"amount"`
	Fee         int64             `json:"fee"`
	Total       int64             `json:"total"`
	Currency    string            `json:"currency"`
	OfferID     *string           `json:"offer_id"`
	Channel     *string           `json:"channel"`
	OperatorRef *string           `json:"operator_ref"`
	CompletedAt string            `json:"completed_at"`
	ReversedAt  *string           `json:"reversed_at"`
	ReceiptURL  string            `json:"receipt_url"`
	Items       []paymentItemJSON `json:"items"`
}

type paymentItemJSON struct {
	itemJSON

	Fee       int64   `json:"fee_minor"`
	Recording string  `json:"recording"`
	Recorded  *string `json:"recorded_at"`
	Reversed  *string `json:"reversed_at"`
}

type paymentsJSON struct {
	Items    []paymentJSON `json:"items"`
	Page     int           `json:"page"`
	PageSize int           `json:"page_size"`
	Total    int64         `json:"total"`
}

func payments(c *call) (int, any, error) {
	q, err := query(c.r, "page", "page_size")
	if err != nil {
		return 0, nil, err
	}
	out := paymentsJSON{Items: []paymentJSON{}, Page: number(q["page"], 1), PageSize: number(q["page_size"], PaymentsPageSize)}
	found, total, err := c.Payments(c.r.Context(), c.who, out.Page, out.PageSize)
	if err != nil {
		return 0, nil, err
	}
	out.Total = total
	for _, p := range found {
		out.Items = append(out.Items, c.toPaymentJSON(p))
	}
	return http.StatusOK, out, nil
}

func (c *call) toPaymentJSON(p Payment) paymentJSON {
	out := paymentJSON{
		SessionID: p.ID, TenantID: p.TenantID, AgencyName: text(p.Agency.Name), PaymentRef: p.PaymentRef, Amount: p.Amount, Total: p.Amount, Currency: p.Currency,
		CompletedAt: timestamp(p.EndedAt), ReversedAt: moment(p.ReversedAt), ReceiptURL: c.CheckoutURL(p.Session), Items: []paymentItemJSON{},
	}
	if paid := p.Collection; paid != nil {
		out.Fee, out.Total = paid.Fee, paid.Amount
		out.OfferID, out.Channel, out.OperatorRef = text(paid.OfferID), text(string(paid.Channel)), text(paid.OperatorRef)
	}
	for _, it := range p.Dues() {
		out.Items = append(out.Items, paymentItemJSON{toItemJSON(it), it.Fee, string(RecordingOf(it)), moment(it.Confirmation.SettledAt), moment(p.Returned(it))})
	}
	return out
}

// number returns a checked parameter, or what counts without it.
func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return otherwise
}

// limits are the largest numbers of parameters. The smallest is 1.
var limits = map[string]int{"page": 1 << 20, "page_size": 100}

// query reads the parameters of an address. Others are a fault, and so are two of a name: a
// misspelt filter must not list everything.
func query(r *http.Request, known ...string) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	f := form.Of(nil)
	if err != nil {
		f.Fault("query", "format", "string is malformed: percent-encode its names and values")
	}
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name][0]
		switch {
		case !slices.Contains(known, name):
			f.Fault(name, "unknown", "is not a parameter of this request; the parameters are "+strings.Join(known, ", "))
		case len(values[name]) > 1:
			f.Fault(name, "repeated", "must be given once")
		default:
			out[name] = value
		}
	}
	if id, ok := out["tenant_id"]; ok {
		if out["tenant_id"], ok = form.CanonicalUUID(id); !ok {
			f.Fault("tenant_id", "format", "must be a UUID")
		}
	}
	if ref, ok := out["subject_ref"]; ok && (!erp.IsReference(ref) || citizens.CheckSubjectRef(ref) != nil) {
		f.Fault("subject_ref", "format", "must be a reference as the agency writes it")
	}
	for name, most := range limits {
		value, ok := out[name]
		if n, err := strconv.Atoi(value); ok && (err != nil || n < 1 || n > most || strconv.Itoa(n) != value) {
			f.Fault(name, "range", fmt.Sprintf("must be an integer from 1 to %d", most))
		}
	}
	if faults := f.Faults(); len(faults) > 0 {
		return nil, problem.New("generic.invalid_query").Naming(faults)
	}
	return out, nil
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return text(timestamp(t))
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
