// Package erps gives tests the simulated ERP of an agency and a reader of its dues.
package erps

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/test/servers"
)

const (
	slug  = "impots"
	token = "token-of-the-simulated-erp"
)

// ERP is a simulated ERP for the test payments of one agency, and Dues read from it.
type ERP struct {
	*erp.Dues
	agencyID, url string
	t             testing.TB
}

// Start starts the ERP of an agency. now is the service's clock.
func Start(t testing.TB, agencyID string, now func() time.Time) *ERP {
	t.Helper()
	s, err := simulator.New(simulator.Config{Now: now, Log: servers.Logger(t), ERPAuth: func(string) []simulator.Auth {
		return []simulator.Auth{{Type: simulator.AuthBearer, Token: token}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	e := &ERP{agencyID: agencyID, url: server.URL, t: t}
	if e.Dues, err = erp.NewDues(erp.DuesConfig{Client: erp.New(erp.Config{Loopback: true}), Registry: e, Now: now}); err != nil {
		t.Fatal(err)
	}
	return e
}

// ERP is part of erp.DuesRegistry.
func (e *ERP) ERP(agencyID string, live bool) (registry.ERPSettings, bool) {
	return registry.ERPSettings{
		AgencyID: agencyID, BaseURL: e.url + "/erp/" + slug, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText(token)},
	}, agencyID == e.agencyID && !live
}

// Agency is part of erp.DuesRegistry.
func (e *ERP) Agency(id string) (registry.Agency, bool) {
	return registry.Agency{ID: id, Slug: slug}, id == e.agencyID
}

// ResolveService is part of erp.DuesRegistry. Dues have no service.
func (e *ERP) ResolveService(string, string) (registry.Service, bool) {
	return registry.Service{}, false
}

// Control sends the ERP a control request (POST /control/erp/{agency}).
func (e *ERP) Control(body string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, e.url+"/control/erp/"+slug, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := httpclient.Default.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		e.t.Fatalf("POST /control/erp: %s of %s", answer.Status, body)
	}
}

// Cart pulls dues of the standard subjects of the simulated ERP, such as TP-1001-A. The result
// makes a session one of the citizen portal that pays them in full.
func (e *ERP) Cart(pulledAt time.Time, refs ...string) func(*checkout.Session) {
	e.t.Helper()
	var items []checkout.Item
	for _, ref := range refs {
		subject := ref[:strings.LastIndex(ref, "-")]
		a, err := e.Fresh(e.t.Context(), e.agencyID, false, subject)
		due, ok := a.Find(ref)
		if err != nil || !ok {
			e.t.Fatalf("due %s: %+v, %v", ref, a, err)
		}
		items = append(items, checkout.Item{ERPDueRef: ref, SubjectRef: subject, Label: due.Label, Amount: due.Outstanding, Outstanding: due.Outstanding})
	}
	return func(s *checkout.Session) {
		s.ERP, s.CitizenID, s.PulledAt, s.Amount = true, "018f0000-0000-7000-8000-0000000c1712", pulledAt, 0
		for _, item := range items {
			item.TransactionID, item.NoticeRef = s.TransactionID+item.ERPDueRef, s.NoticeRef+item.ERPDueRef
			s.Items = append(s.Items, item)
			s.Amount += item.Amount
		}
	}
}
