package receipt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/ingress/verify"
	"quittance/internal/receipts"
	"quittance/internal/transport"
	"quittance/money"
	"quittance/money/language"
)

// maxReceiptAnswer is the size of the largest file or answer that is read.
const maxReceiptAnswer = 64 << 20

func verifyReceipt() cli.Command {
	var service, keys, reversed string
	return cli.Command{
		Use: "verify FILE|TOKEN", Short: "Check a receipt: what its code holds, or a file with that", JSON: "the result", Connection: cli.ConnectionNone,
		Long: "Check a receipt: what its code holds, the address or the token in it, or a file with that.\n\n" +
			"With --service it asks the service for its keys, whether the payment stands, and whether its amount, fee, currency and references are those of the receipt. It sends a digest of these, not the receipt. With --keys it needs no network and asks nobody; --reversed is then the list of cancelled payments of the receipt's key.\n\n" +
			"The exit code is 0 for a receipt that proves a payment, as far as that was checked, and else 1.",
		Missing:  "say which receipt: {usage}",
		Examples: []string{"receipts verify token.txt --service https://pay.example", "receipts verify token.txt --keys jwks.json --reversed reversed.json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&service, "service", "", "address of the pages of the service, https")
			f.StringVar(&keys, "keys", "", "file with the service's /.well-known/jwks.json")
			f.StringVar(&reversed, "reversed", "", "with --keys: file with the service's /q/reversed/KID.json")
		},
		Check: func(*cli.Meta) error {
			switch {
			case (service == "") == (keys == ""):
				return cli.Usage("say with what to check: either --service URL, or --keys FILE for a check without network")
			case reversed != "" && keys == "":
				return cli.Usage("--reversed is for --keys; with --service the service is asked")
			}
			return nil
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			text, err := receiptText(m.Args[0])
			if err != nil {
				return err
			}
			var result receipts.Result
			if service != "" {
				result, err = checkReceiptOnline(ctx, service, text)
			} else {
				result, err = checkReceiptOffline(keys, reversed, text)
			}
			if err != nil {
				return err
			}
			return showReceipt(m, result)
		},
	}
}

// receiptText returns what the argument of a check is: the text of a file, or the argument.
func receiptText(argument string) (string, error) {
	if strings.Count(argument, ".") >= 2 && !strings.ContainsAny(argument, " \n") {
		if _, err := os.Stat(argument); err != nil {
			return argument, nil //nolint:nilerr // no file has this name: it is a token
		}
	}
	body, err := readReceiptFile(argument)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; give a file, or what the receipt's code holds", err)
	case bytes.HasPrefix(body, []byte("%PDF-")):
		return "", fmt.Errorf("%s is a PDF, whose code only a camera or a code reader reads: give what the code holds, or the `token` of the integrator's JSON", argument)
	}
	return string(body), nil
}

func readReceiptFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxReceiptAnswer))
}

// checkReceiptOffline checks with files alone.
func checkReceiptOffline(keysFile, reversedFile, text string) (receipts.Result, error) {
	body, err := readReceiptFile(keysFile)
	if err != nil {
		return receipts.Result{}, fmt.Errorf("--keys: %w", err)
	}
	keys, err := receipts.ParseJWKS(body)
	if err != nil {
		return receipts.Result{}, fmt.Errorf("--keys: %w", err)
	}
	lists := map[string]*receipts.Reversals{}
	if reversedFile != "" {
		body, err := readReceiptFile(reversedFile)
		if err != nil {
			return receipts.Result{}, fmt.Errorf("--reversed: %w", err)
		}
		kid, list, err := keys.ReadReversals("", body)
		if err != nil {
			return receipts.Result{}, fmt.Errorf("--reversed: %w", err)
		}
		lists[kid] = &list
	}
	return keys.CheckOffline("", text, func(kid string) *receipts.Reversals { return lists[kid] }), nil
}

// receiptService is a service that is asked about receipts.
type receiptService struct {
	base   *url.URL
	client *http.Client
}

// errNotCompared says that a service of an earlier release ignored the digest of the payment.
var errNotCompared = errors.New("the service has not compared the receipt with the payment")

// checkReceiptOnline checks a receipt as the page /q does.
func checkReceiptOnline(ctx context.Context, address, text string) (receipts.Result, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Host == "" || base.Scheme != "https" && (base.Scheme != "http" || base.Hostname() != "localhost" && base.Hostname() != "127.0.0.1") {
		return receipts.Result{}, cli.Usage("--service: must be an https address such as https://pay.example")
	}
	via := transport.HTTP(&net.Dialer{})
	via.Proxy = http.ProxyFromEnvironment
	s := receiptService{base, &http.Client{Transport: via, Timeout: 20 * time.Second}}
	body, err := s.do(ctx, http.MethodGet, verify.PathKeys, nil)
	if err != nil {
		return receipts.Result{}, err
	}
	keys, err := receipts.ParseJWKS(body)
	if err != nil {
		return receipts.Result{}, err
	}
	read, err := keys.Verify(base.Host, text)
	if errors.Is(err, receipts.ErrUnknownKey) || errors.Is(err, receipts.ErrVersion) {
		return s.record(ctx, text)
	}
	var at time.Time
	result, err := keys.Check(ctx, base.Host, text, time.Time{}, func(ctx context.Context, transactionID string) (receipts.Record, bool, error) {
		jti, _ := receipts.IDOf(transactionID) // it comes from a token
		body, err := s.do(ctx, http.MethodGet, verify.Prefix+"/status/"+jti+"?"+verify.QueryPayment+"="+read.Claims.PaymentDigest(), nil)
		if err != nil {
			return receipts.Record{}, false, err
		}
		var status verify.Status
		if err := json.Unmarshal(body, &status); err != nil {
			return receipts.Record{}, false, fmt.Errorf("reading the state of the payment: %w", err)
		}
		at = time.Unix(status.At, 0)
		if known := status.Status != verify.StatusUnknown; known && status.Agrees == nil {
			return receipts.Record{}, false, errNotCompared
		}
		record := receipts.Record{Live: true, Differs: status.Agrees != nil && !*status.Agrees}
		if status.ReversedAt != 0 {
			record.ReversedAt = time.Unix(status.ReversedAt, 0)
		}
		return record, status.Status == verify.StatusPaid || status.Status == verify.StatusReversed, nil
	})
	if errors.Is(err, errNotCompared) {
		return s.record(ctx, text)
	}
	if result.Verdict == receipts.VerdictAuthentic {
		result.At = at
	}
	return result, err
}

// record has the service compare a receipt with its record, when only that proves it.
func (s receiptService) record(ctx context.Context, text string) (receipts.Result, error) {
	body, err := s.do(ctx, http.MethodPost, verify.Prefix, url.Values{"receipt": {text}})
	if err != nil {
		return receipts.Result{}, err
	}
	var answer verify.Answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return receipts.Result{}, fmt.Errorf("reading the service's verdict: %w", err)
	}
	out := receipts.Result{Verdict: answer.Verdict}
	if answer.At != 0 {
		out.At = time.Unix(answer.At, 0)
	}
	if answer.Claims != nil {
		out.Claims = *answer.Claims
	}
	return out, nil
}

// do calls the service.
func (s receiptService) do(ctx context.Context, method, path string, form url.Values) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.base.String()+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking the service: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxReceiptAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("asking the service: %w", err)
	case answer.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("the service gets too many checks from here; try again in %s s", answer.Header.Get("Retry-After"))
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the service answers %s to %s; is %s its address?", answer.Status, path, s.base)
	}
	return body, nil
}

// inEnglish writes an amount in minor units.
func inEnglish(code string, amount int64) string {
	if currency, ok := money.Lookup(code); ok {
		return currency.Format(money.English, amount)
	}
	return fmt.Sprint(amount, " ", code)
}

// showReceipt prints a result. What proves no payment is an error.
func showReceipt(m *cli.Meta, r receipts.Result) error {
	sentence := verify.Sentence(money.English, r)
	c := r.Claims
	var claims any
	if c.ID != "" {
		claims = c
	}
	err := m.Show(render.Object{"verdict", string(r.Verdict), "sentence", sentence, "at", r.At, "claims", claims}, func(p *render.Page) {
		p.Say("%s", sentence)
		if c.ID == "" {
			return
		}
		amount := inEnglish(c.Currency, c.Amount)
		if c.Fee != 0 {
			amount += " and a fee of " + inEnglish(c.Currency, c.Fee)
		}
		transaction, _ := c.TransactionID()
		p.Say("%s to %s (%s), paid on %s by %s; payment reference %s, notice %s, transaction %s", amount, c.Agency, c.Service, language.Date(money.English, c.Paid()), c.Channel, c.PaymentRef, c.NoticeRef, transaction)
	})
	if err == nil && r.Verdict != receipts.VerdictAuthentic && r.Verdict != receipts.VerdictUnconfirmed {
		err = errors.New("the receipt proves no payment")
	}
	return err
}
