package ministry

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/ingress/problem"
	"quittance/internal/registry"
)

// secretLabel is the use of the master keys that seals client_secrets.
const secretLabel = "client_secret"

func (a *API) create(w http.ResponseWriter, r *http.Request, p registry.Principal) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	q, form, err := parseCreate(body, p.Live)
	if err != nil {
		return err
	}
	app, form, err := a.target(p, q.tenantID, form)
	if err != nil {
		return err
	}
	cmd := checkout.Create{IdempotencyKey: key, BodyHash: q.hash}
	now := a.cfg.Now().UTC().Truncate(time.Millisecond)
	if app.ID != "" {
		cmd.Session, cmd.Faults = a.draft(q, app, p, now)
		cmd.CreationsPerMinute = app.CreationsPerMinute
	}
	if len(form) > 0 { // refused at the edge, with what the configuration adds; the key stays unused
		for _, f := range cmd.Faults {
			if !slices.ContainsFunc(form, func(g problem.Fault) bool { return g.Field == f.Field }) {
				form = append(form, problem.Fault{Field: f.Field, Rule: f.Rule, Message: f.Message})
			}
		}
		return invalid(form)
	}
	if after, ok := a.flood.admit(app.ID, app.CreationsPerMinute, now); !ok {
		quotaHeaders(w, app.CreationsPerMinute, 0, after)
		return rateLimited(after)
	}
	if err := a.mint(&cmd.Session, now); err != nil {
		return err
	}
	answer, err := a.cfg.Hub.Ask(r.Context(), checkout.Command{
		At: now, SessionID: cmd.Session.ID, ApplicationID: app.ID, Live: p.Live, Do: cmd,
	})
	if err != nil {
		return err
	}
	if answer.QuotaLimit > 0 {
		quotaHeaders(w, answer.QuotaLimit, answer.QuotaRemaining, now.Truncate(time.Minute).Add(time.Minute).Sub(now))
	}
	if answer.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if answer.Code != checkout.CodeOK {
		return refusal(answer)
	}
	if !answer.Replayed {
		answer.Session = &cmd.Session // as it was sent: the reply to a first creation leaves it out
		answer.Session.Status = checkout.StatusOpen
	}
	return a.created(w, answer)
}

// created writes the creation answer, the first one or the same again.
func (a *API) created(w http.ResponseWriter, answer checkout.Answer) error {
	s := *answer.Session
	var clientSecret *string
	if len(s.ClientSecretSealed) > 0 && s.Status == checkout.StatusOpen {
		plain, err := a.cfg.Keys.Open(secretLabel, s.ClientSecretSealed, []byte(s.ID))
		if err != nil {
			return fmt.Errorf("opening the client_secret of a session: %w", err)
		}
		text := string(plain)
		clientSecret = &text
	}
	s.Status = checkout.StatusOpen // what was first answered, whatever became of it
	out := toSession(s, a.cfg.CheckoutURL)
	out.ClientSecret = clientSecret
	w.Header().Set("Location", "/api/v1/checkout/sessions/"+s.ID)
	return writeJSON(w, http.StatusCreated, out)
}

func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	bad := func(code, detail string) error {
		return &problem.Problem{Status: http.StatusBadRequest, Code: code, Title: "Idempotency-Key", Detail: detail}
	}
	switch {
	case len(values) == 0:
		return "", bad("idempotency.key_required", "The header Idempotency-Key is required: a new value, such as a UUID, for each new creation.")
	case len(values) > 1 || values[0] == "" || len(values[0]) > 255:
		return "", bad("idempotency.key_invalid", "The header Idempotency-Key must be sent once and have 1 to 255 characters.")
	}
	return values[0], nil
}

// target is the application that the request is for: the key's own, or for a
// platform key the integrator application of the agency that tenant_id names
// (decisions § 9).
func (a *API) target(p registry.Principal, tenantID string, form []problem.Fault) (registry.Application, []problem.Fault, error) {
	fault := func(rule, message string) (registry.Application, []problem.Fault, error) {
		return registry.Application{}, append(form, problem.Fault{Field: "tenant_id", Rule: rule, Message: message}), nil
	}
	malformed := slices.ContainsFunc(form, func(f problem.Fault) bool { return f.Field == "tenant_id" })
	if !p.Platform {
		app, ok := a.cfg.Registry.Application(p.ApplicationID)
		if !ok || !app.Active {
			return registry.Application{}, nil, unauthorized()
		}
		if tenantID != "" && tenantID != app.AgencyID {
			form = append(form, foreignTenant())
		}
		return app, form, nil
	}
	switch {
	case malformed:
		return registry.Application{}, form, nil
	case tenantID == "":
		return fault("required", "tenant_id is required with a platform key.")
	case !slices.Contains(p.AgencyIDs, tenantID):
		return registry.Application{}, nil, forbiddenAgency()
	}
	app, ok := a.cfg.Registry.IntegratorOf(tenantID)
	if !ok || !app.Active {
		return fault("integrator", "tenant_id names an agency that has no active integrator application; the platform's operators configure one.")
	}
	return app, form, nil
}

// draft is the session as the request and the configuration make it, and the
// faults that depend on configuration.
func (a *API) draft(q createRequest, app registry.Application, p registry.Principal, now time.Time) (checkout.Session, []checkout.Fault) {
	s := checkout.Session{
		ApplicationID: app.ID, TenantID: app.AgencyID, Live: p.Live, Platform: p.Platform,
		OrderID: q.orderID, Amount: q.amount, Currency: q.currency, Mode: q.mode, ServiceCode: q.serviceCode,
		Description: q.description, Note: q.note, Customer: q.customer, CustomerID: q.customerID, Metadata: q.metadata,
		SuccessURL: q.successURL, CancelURL: q.cancelURL, CreatedAt: now, ExpiresAt: now.Add(app.SessionLifetime),
	}
	var faults []checkout.Fault
	fault := func(code checkout.Code, field, rule, message string) {
		faults = append(faults, checkout.Fault{Code: code, Field: field, Rule: rule, Message: message})
	}
	if q.serviceCode != "" {
		if service, ok := a.cfg.Registry.Service(app.AgencyID, q.serviceCode); ok && service.Active {
			s.ServiceLabel = service.Label
		} else {
			fault(checkout.CodeValidationFailed, "service_code", "active_service", "service_code is not an active service of the agency's catalogue.")
		}
	}
	if q.currency != "" {
		s.Offers = a.offers(app, q.amount, q.currency)
		if len(s.Offers) == 0 {
			fault(checkout.CodeValidationFailed, "currency", "supported", "currency is not one that an offer of this application takes: mobile money and agency counters take XAF, cards the contract's list.")
		}
	}
	origins := app.EmbedOrigins
	if p.Platform {
		origins = a.cfg.Registry.Platform().EmbedOrigins
	}
	if q.mode == checkout.ModeEmbedded && len(origins) == 0 {
		fault(checkout.CodeOriginsRequired, "mode", "origins_required", "mode embedded needs embed origins, and none are configured for this key's scope.")
	}
	return s, faults
}

// offers are the application's offers that take the currency, with their fees.
func (a *API) offers(app registry.Application, amount int64, code string) []checkout.Offer {
	currency, known := money.Lookup(code)
	var out []checkout.Offer
	for _, id := range app.Offers {
		channel, ok := checkout.OfferChannel(id)
		takes := code == money.Default
		if channel == checkout.ChannelCard {
			takes = currency.Card()
		}
		if !ok || !known || !takes {
			continue
		}
		o := checkout.Offer{ID: id, Channel: channel}
		if schedule, ok := a.cfg.Registry.Fee(app.AgencyID, channel, code); ok && amount > 0 {
			fee, err := money.Fee(amount, schedule)
			if err != nil {
				continue // an amount beyond what the schedule can count
			}
			o.Fee = fee
		}
		out = append(out, o)
	}
	return out
}

// mint gives the session its ids, numbers and secret.
func (a *API) mint(s *checkout.Session, now time.Time) error {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	s.ID = checkout.NewSessionID(now, a.cfg.Partition(s.ApplicationID), random)
	var err error
	if s.PaymentRef, err = a.cfg.References.PaymentRef(); err != nil {
		return err
	}
	if s.NoticeRef, err = a.cfg.References.NoticeRef(); err != nil {
		return err
	}
	for _, id := range []*string{&s.NoticeID, &s.TransactionID} {
		u, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("making a UUID: %w", err)
		}
		*id = u.String()
	}
	if s.Mode != checkout.ModeEmbedded {
		return nil
	}
	plain := checkout.PrefixClientSecret + rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(plain))
	s.ClientSecretHash = sum[:]
	if s.ClientSecretSealed, err = a.cfg.Keys.Seal(secretLabel, []byte(plain), []byte(s.ID)); err != nil {
		return fmt.Errorf("sealing a client_secret: %w", err)
	}
	return nil
}

func (a *API) cancel(w http.ResponseWriter, r *http.Request, p registry.Principal) error {
	id := r.PathValue("id")
	q := newQuery(r)
	tenantID := q.uuid("tenant_id")
	if err := q.err(); err != nil {
		return err
	}
	apps, err := a.scope(p, tenantID)
	if err != nil {
		return err
	}
	partition, err := checkout.SessionPartition(id)
	if err != nil {
		return notFound()
	}
	for _, app := range apps {
		if a.cfg.Partition(app) != partition {
			continue
		}
		answer, err := a.cfg.Hub.Ask(r.Context(), checkout.Command{
			At: a.cfg.Now().UTC().Truncate(time.Millisecond), SessionID: id, ApplicationID: app, Live: p.Live,
			Do: checkout.Cancel{By: checkout.ByIntegrator},
		})
		switch {
		case err != nil:
			return err
		case answer.Code == checkout.CodeOK:
			return writeJSON(w, http.StatusOK, toSession(*answer.Session, a.cfg.CheckoutURL))
		case answer.Code != checkout.CodeSessionNotFound:
			return refusal(answer)
		}
	}
	return notFound()
}

// foreignTenant is what an application key is told that names another agency
// (decisions § 9).
func foreignTenant() problem.Fault {
	return problem.Fault{
		Field: "tenant_id", Rule: "own_agency",
		Message: "tenant_id is not the agency of this key's application; leave it out, an application key needs none.",
	}
}

// scope are the applications whose sessions the key sees; with a platform key
// those of one agency when tenantID names it.
func (a *API) scope(p registry.Principal, tenantID string) ([]string, error) {
	if !p.Platform {
		app, ok := a.cfg.Registry.Application(p.ApplicationID)
		if !ok || !app.Active {
			return nil, unauthorized()
		}
		if tenantID != "" && tenantID != app.AgencyID {
			return nil, invalid([]problem.Fault{foreignTenant()})
		}
		return []string{app.ID}, nil
	}
	agencies := p.AgencyIDs
	if tenantID != "" {
		if !slices.Contains(agencies, tenantID) {
			return nil, forbiddenAgency()
		}
		agencies = []string{tenantID}
	}
	var out []string
	for _, id := range agencies {
		if app, ok := a.cfg.Registry.IntegratorOf(id); ok {
			out = append(out, app.ID)
		}
	}
	return out, nil
}

func (a *API) authenticate(r *http.Request) (registry.Principal, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return registry.Principal{}, unauthorized()
	}
	scheme, key, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return registry.Principal{}, unauthorized()
	}
	p, err := a.cfg.Registry.AuthenticateKey(strings.TrimSpace(key))
	if err != nil {
		return registry.Principal{}, unauthorized()
	}
	return p, nil
}

// quotaHeaders tell the creation quota (IETF draft RateLimit headers).
func quotaHeaders(w http.ResponseWriter, limit, remaining int, reset time.Duration) {
	w.Header().Set("RateLimit-Policy", `"creations";q=`+strconv.Itoa(limit)+`;w=60`)
	w.Header().Set("RateLimit", `"creations";r=`+strconv.Itoa(remaining)+`;t=`+strconv.Itoa(int((reset+time.Second-1)/time.Second)))
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the caller is gone when it fails
	return nil
}
