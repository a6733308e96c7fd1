package partner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// api calls the deprecated cash-in API. It keeps one access token. Safe for concurrent use.
type api struct {
	base, key, secret string
	client            *http.Client

	mu      sync.Mutex
	token   string
	expires time.Time
}

// refusal is an error answer: message, status and code, or the faults of a form.
type refusal struct {
	Message string `json:"message"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Errors  []struct {
		Message string `json:"message"`
		Rule    string `json:"rule"`
		Field   string `json:"field"`
	} `json:"errors"`
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Message)
	for _, e := range r.Errors {
		text += fmt.Sprintf("; %s: %s", e.Field, e.Message)
	}
	return text
}

// item is a line of a payment.
type item struct {
	Number   string `json:"number"`
	Name     string `json:"name"`
	Price    int64  `json:"price"`
	Quantity int    `json:"quantity"`
}

// initCheckout is the body of init-checkout.
type initCheckout struct {
	ExternalNumber string   `json:"externalNumber"`
	Amount         int64    `json:"amount"`
	Description    string   `json:"description"`
	Type           string   `json:"type"`
	Items          []item   `json:"items"`
	Merchant       merchant `json:"merchant"`
}

type merchant struct {
	RedirectURL string `json:"redirectUrl"`
	BackURL     string `json:"backUrl"`
	WebhookURL  string `json:"webhookUrl"`
}

// payment is the body of partners/payments.
type payment struct {
	ExternalNumber string   `json:"externalNumber"`
	Amount         int64    `json:"amount"`
	Description    string   `json:"description"`
	Provider       string   `json:"provider"`
	Customer       customer `json:"customer"`
	Items          []item   `json:"items"`
}

type customer struct {
	Phone string `json:"phone"`
}

// made is the answer of both.
type made struct {
	PaymentID   int64  `json:"paymentId"`
	RedirectURL string `json:"redirectUrl"` // of init-checkout
	Number      string `json:"number"`      // of partners/payments
}

// gateway is an entry of payment-gateways.
type gateway struct {
	Name          string `json:"name"`
	PhoneRequired bool   `json:"phoneRequired"`
}

func (a *api) initCheckout(ctx context.Context, body initCheckout) (out made, err error) {
	return out, a.call(ctx, http.MethodPost, "/init-checkout", body, &out)
}

func (a *api) pay(ctx context.Context, body payment) (out made, err error) {
	return out, a.call(ctx, http.MethodPost, "/partners/payments", body, &out)
}

// status asks for the status of a payment by its number.
func (a *api) status(ctx context.Context, number string) (string, error) {
	var out struct {
		Status string `json:"status"`
	}
	err := a.call(ctx, http.MethodGet, "/transactions/"+number+"/check-status", nil, &out)
	return out.Status, err
}

func (a *api) gateways(ctx context.Context) (out []gateway, err error) {
	return out, a.call(ctx, http.MethodGet, "/partners/payment-gateways", nil, &out)
}

// call makes a call with the token, and once more with a new one when it is refused.
func (a *api) call(ctx context.Context, method, path string, body, into any) error {
	for again := false; ; again = true {
		token, err := a.access(ctx, again)
		if err != nil {
			return err
		}
		err = a.once(ctx, method, path, token, body, into)
		if refused := (*refusal)(nil); !again && errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
			continue
		}
		return err
	}
}

// access returns the token, or a new one when it has expired or was refused.
func (a *api) access(ctx context.Context, renew bool) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !renew && a.token != "" && time.Until(a.expires) > time.Minute {
		return a.token, nil
	}
	var out struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	if err := a.once(ctx, http.MethodPost, "/generate-application-access-token", "", map[string]string{"apiKey": a.key, "secretKey": a.secret}, &out); err != nil {
		return "", err
	}
	a.token, a.expires = out.Token, out.ExpiresAt
	return a.token, nil
}

// revoke ends the token.
func (a *api) revoke(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == "" {
		return nil
	}
	var out struct{}
	err := a.once(ctx, http.MethodPost, "/revoke-application-access-token", a.token, nil, &out)
	a.token = ""
	return err
}

// once makes one call.
func (a *api) once(ctx context.Context, method, path, token string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encoding the body of %s: %w", path, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+"/api"+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("calling %s: %w", path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := a.client.Do(req) //nolint:gosec // the origin is configured, and the rest of the path is our own or the API's
	if err != nil {
		return fmt.Errorf("calling %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		refused := &refusal{}
		_ = json.Unmarshal(answer, refused) // without a body the status suffices
		refused.Status = resp.StatusCode
		return fmt.Errorf("calling %s: %w", path, refused)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	return nil
}
