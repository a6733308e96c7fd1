package operations_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"quittance/disbursement"
	"quittance/internal/identity"
	"quittance/internal/jobs"
	"quittance/internal/sessions"
	"quittance/internal/statements"
	"quittance/schemas/mapping/batches"
	"quittance/test/backoffice"
	"quittance/test/registries"
)

// may is who may use a route, written by hand: the test compares it with what the pages do. A route that is not here
// fails the test. notFound is the answer to somebody who may, about something that does not exist; 404 unless it says
// otherwise.
var may = map[string]struct {
	roles    []identity.Role // nil: everybody who is signed in
	notFound int
	found    int  // of what exists; 200 when zero
	others   bool // what exists is another person's, who alone sees it
}{
	"GET /work":          {roles: nil, notFound: http.StatusOK},
	"GET /sessions":      {roles: nil, notFound: http.StatusOK},
	"POST /sessions/end": {roles: nil, notFound: http.StatusSeeOther},
	"GET /ops/search":    {roles: seers, notFound: http.StatusOK}, // without a term it says how
	"POST /ops/search":   {roles: seers, notFound: http.StatusSeeOther},
	"GET /ops/payments":  {roles: seers, notFound: http.StatusOK},
	"GET /ops/cases":     {roles: seers, notFound: http.StatusOK},
	"GET /ops/endpoints": {roles: seers, notFound: http.StatusOK},
	"GET /ops/stuck":     {roles: seers, notFound: http.StatusOK},

	"GET /ops/payments/{place}":                              {roles: seers},
	"GET /ops/cases/{case}":                                  {roles: seers},
	"GET /ops/endpoints/{kind}/{destination}":                {roles: seers},
	"POST /ops/payments/{place}/deliveries/{delivery}/retry": {roles: actors},
	"POST /ops/cases/{case}/propose/begin":                   {roles: actors},
	"POST /ops/cases/{case}/propose":                         {roles: actors, notFound: http.StatusConflict}, // no passkey has signed
	"POST /ops/cases/{case}/reject":                          {roles: actors},
	"POST /ops/endpoints/{kind}/{destination}/suspend":       {roles: actors},
	"POST /ops/endpoints/{kind}/{destination}/resume":        {roles: actors},
	"POST /ops/cases/{case}/approve/begin":                   {roles: actors, notFound: http.StatusConflict}, // it names no proposal
	"POST /ops/cases/{case}/approve/{number:[0-9]{1,4}}":     {roles: actors, notFound: http.StatusConflict}, // no passkey has signed

	"GET /agency/search":           {roles: agencySeers, notFound: http.StatusOK},
	"POST /agency/search":          {roles: agencySeers, notFound: http.StatusSeeOther},
	"GET /agency/payments":         {roles: agencySeers, notFound: http.StatusOK},
	"GET /agency/cases":            {roles: agencySeers, notFound: http.StatusOK},
	"GET /agency/payments/{place}": {roles: agencySeers},
	"GET /agency/cases/{case}":     {roles: agencySeers},
	"POST /agency/payments/{place}/deliveries/{delivery}/retry": {roles: accountants},
	"POST /agency/cases/{case}/propose/begin":                   {roles: accountants},
	"POST /agency/cases/{case}/propose":                         {roles: accountants, notFound: http.StatusConflict},
	"POST /agency/cases/{case}/reject":                          {roles: agencyDeciders},
	"POST /agency/cases/{case}/approve/begin":                   {roles: agencyDeciders, notFound: http.StatusConflict},
	"POST /agency/cases/{case}/approve/{number:[0-9]{1,4}}":     {roles: agencyDeciders, notFound: http.StatusConflict},

	"GET /ops/imports":                                          {roles: seers, notFound: http.StatusOK},
	"GET /ops/imports/{import}":                                 {roles: seers},
	"GET /ops/imports/{import}/files/{request}":                 {roles: actors, others: true},
	"POST /ops/imports/{import}/ask/{what}/begin":               {roles: actors},
	"POST /ops/imports/{import}/ask/{what}":                     {roles: actors},
	"POST /ops/imports/{import}/dismiss/begin":                  {roles: leaders},
	"POST /ops/imports/{import}/dismiss":                        {roles: leaders},
	"POST /ops/imports/{import}/reopen":                         {roles: actors},
	"POST /ops/imports/{import}/{what}/{request}/approve/begin": {roles: leaders},
	"POST /ops/imports/{import}/{what}/{request}/approve":       {roles: leaders},
	"POST /ops/imports/{import}/{what}/{request}/reject":        {roles: actors},

	"GET /ops/deliveries":                {roles: seers, notFound: http.StatusOK},
	"GET /ops/jobs":                      {roles: seers, notFound: http.StatusOK},
	"GET /ops/jobs/{job}":                {roles: seers},
	"POST /ops/jobs":                     {roles: actors, notFound: http.StatusUnprocessableEntity}, // the form has no id
	"POST /ops/jobs/{job}/start":         {roles: actors},
	"POST /ops/jobs/{job}/sign/begin":    {roles: actors},
	"POST /ops/jobs/{job}/sign":          {roles: actors, notFound: http.StatusConflict}, // no passkey has signed
	"POST /ops/jobs/{job}/stop":          {roles: actors},
	"POST /ops/jobs/{job}/again":         {roles: actors, notFound: http.StatusUnprocessableEntity},
	"POST /ops/jobs/{job}/approve/begin": {roles: leaders},
	"POST /ops/jobs/{job}/approve":       {roles: leaders, notFound: http.StatusConflict},

	"GET /agency/deliveries":             {roles: agencySeers, notFound: http.StatusOK},
	"GET /agency/jobs":                   {roles: agencySeers, notFound: http.StatusOK},
	"GET /agency/jobs/{job}":             {roles: agencySeers},
	"POST /agency/jobs":                  {roles: accountants, notFound: http.StatusUnprocessableEntity},
	"POST /agency/jobs/{job}/start":      {roles: accountants},
	"POST /agency/jobs/{job}/sign/begin": {roles: accountants},
	"POST /agency/jobs/{job}/sign":       {roles: accountants, notFound: http.StatusConflict},
	"POST /agency/jobs/{job}/stop":       {roles: accountants},
	"POST /agency/jobs/{job}/again":      {roles: accountants, notFound: http.StatusUnprocessableEntity},

	"GET /agency/imports":                                          {roles: agencySeers, notFound: http.StatusOK},
	"GET /agency/imports/{import}":                                 {roles: agencySeers},
	"GET /agency/imports/{import}/files/{request}":                 {roles: accountants, others: true},
	"POST /agency/imports/{import}/ask/{what}/begin":               {roles: accountants},
	"POST /agency/imports/{import}/ask/{what}":                     {roles: accountants},
	"POST /agency/imports/{import}/dismiss/begin":                  {roles: approvers},
	"POST /agency/imports/{import}/dismiss":                        {roles: approvers},
	"POST /agency/imports/{import}/reopen":                         {roles: agencyDeciders},
	"POST /agency/imports/{import}/{what}/{request}/approve/begin": {roles: approvers},
	"POST /agency/imports/{import}/{what}/{request}/approve":       {roles: approvers},
	"POST /agency/imports/{import}/{what}/{request}/reject":        {roles: agencyDeciders},
	"GET /agency/batches":                                          {roles: batchSeers, notFound: http.StatusOK},
	"GET /agency/batches/people":                                   {roles: batchSeers, notFound: http.StatusOK},
	"POST /agency/batches/people/propose/begin":                    {roles: batchManagers, notFound: http.StatusConflict}, // the form is empty
	"POST /agency/batches/people/propose":                          {roles: batchManagers, notFound: http.StatusConflict}, // no passkey has signed
	"POST /agency/batches/people/confirm/begin":                    {roles: batchManagers, notFound: http.StatusConflict}, // nothing is proposed
	"POST /agency/batches/people/confirm":                          {roles: batchManagers, notFound: http.StatusConflict},
	"POST /agency/batches/people/drop":                             {roles: batchManagers},
	"POST /agency/batches/people/revoke":                           {roles: batchManagers, notFound: http.StatusServiceUnavailable}, // there is no processor
	"GET /agency/batches/{batch}":                                  {roles: batchSeers},
	"GET /agency/batches/{batch}/certificate":                      {roles: batchSeers, found: http.StatusConflict},    // it is not approved
	"GET /agency/batches/{batch}/lines/{line}/advice":              {roles: batchManagers, found: http.StatusConflict}, // it is not paid
	"POST /agency/batches/{batch}/hold":                            {roles: batchManagers},
	"POST /agency/batches/{batch}/stop":                            {roles: batchManagers},
	"POST /agency/batches/{batch}/accounts/{account}/try":          {roles: batchManagers},
	"POST /agency/batches/{batch}/recall":                          {roles: preparers},
	"POST /agency/batches/{batch}/seal":                            {roles: preparers},
	"POST /agency/batches/{batch}/discard":                         {roles: preparers},
	"GET /agency/batches/import":                                   {roles: preparers, notFound: http.StatusOK},
	"POST /agency/batches/import":                                  {roles: preparers, notFound: http.StatusUnprocessableEntity}, // without a file
	"GET /agency/batches/template":                                 {roles: preparers, notFound: http.StatusOK},
	"POST /agency/batches/{batch}/approve/begin":                   {roles: batchApprovers},
	"POST /agency/batches/{batch}/approve":                         {roles: batchApprovers, notFound: http.StatusConflict}, // no passkey has signed
	"POST /agency/batches/{batch}/reject/begin":                    {roles: batchApprovers},
	"POST /agency/batches/{batch}/reject":                          {roles: batchApprovers, notFound: http.StatusConflict},
	"POST /agency/batches/{batch}/release/begin":                   {roles: batchApprovers},
	"POST /agency/batches/{batch}/release":                         {roles: batchApprovers, notFound: http.StatusConflict},
	"POST /agency/batches/{batch}/resume/begin":                    {roles: batchManagers},
	"POST /agency/batches/{batch}/resume":                          {roles: batchManagers, notFound: http.StatusConflict},
	"GET /agency/batches/{batch}/lines/{line}":                     {roles: batchManagers},
	"POST /agency/batches/{batch}/lines/{line}/settle/begin":       {roles: batchManagers},
	"POST /agency/batches/{batch}/lines/{line}/settle":             {roles: batchManagers, notFound: http.StatusConflict}, // no passkey has signed
	"POST /agency/batches/{batch}/lines/{line}/settle/drop":        {roles: batchManagers},
	"POST /agency/batches/{batch}/lines/{line}/retry":              {roles: batchManagers},
	"POST /agency/batches/{batch}/lines/{line}/cancel":             {roles: batchManagers},
	"POST /agency/batches/{batch}/lines/{line}/acknowledge":        {roles: batchManagers},

	"GET /ops/health":             {roles: seers, notFound: http.StatusOK},
	"GET /ops/payments/file":      {roles: actors, notFound: http.StatusOK},
	"GET /ops/cases/file":         {roles: actors, notFound: http.StatusOK},
	"GET /ops/deliveries/file":    {roles: actors, notFound: http.StatusOK},
	"GET /agency/payments/file":   {roles: accountants, notFound: http.StatusOK},
	"GET /agency/cases/file":      {roles: accountants, notFound: http.StatusOK},
	"GET /agency/deliveries/file": {roles: accountants, notFound: http.StatusOK},

	"GET /ops/reports":         {roles: seers, notFound: http.StatusOK},
	"GET /ops/reports/file":    {roles: actors, notFound: http.StatusOK}, // it asks which report
	"GET /agency/reports":      {roles: agencySeers, notFound: http.StatusOK},
	"GET /agency/reports/file": {roles: accountants, notFound: http.StatusOK},
	"GET /admin/audit":         {roles: auditors, notFound: http.StatusOK},
	"POST /admin/audit":        {roles: auditors, notFound: http.StatusSeeOther},
	"GET /agency/audit":        {roles: agencyAuditors, notFound: http.StatusOK},
	"POST /agency/audit":       {roles: agencyAuditors, notFound: http.StatusSeeOther},

	"GET /people":                          {roles: managers, notFound: http.StatusOK},
	"GET /people/invite":                   {roles: managers, notFound: http.StatusOK},
	"GET /people/{person}":                 {roles: managers},
	"GET /people/{person}/{act}":           {roles: managers},
	"GET /people/invitations/{invitation}": {roles: managers},
	"GET /people/changes/{change}":         {roles: managers},
	"POST /people/ask/begin":               {roles: managers, notFound: http.StatusUnprocessableEntity}, // the form is empty
	"POST /people/ask":                     {roles: managers, notFound: http.StatusConflict},            // no passkey has signed
	"POST /people/end":                     {roles: managers},
	"GET /requests/{request}":              {others: true},
	"GET /passkeys":                        {notFound: http.StatusOK},
	"POST /passkeys/begin":                 {notFound: http.StatusUnprocessableEntity}, // the form is empty
	"POST /passkeys/remove":                {notFound: http.StatusConflict},            // no passkey has signed
}

// draft is the snapshot of a batch of the agency.
func draft(t *testing.T, w *backoffice.World) []byte {
	t.Helper()
	r := batches.FromBatch(disbursement.Batch{
		ID: "dsb_1", TenantID: registries.AgencyA, Live: true, BatchRef: "r", Revision: 1, Scope: disbursement.ScopeAgency, Source: disbursement.SourceFile,
		Status: disbursement.StatusDraft, Currency: "XAF", Date: "2026-03-02", Maker: w.IDs["Personne 2"], ImportID: "i", Count: 1, OpenedAt: w.Now(), Sequence: 1,
	})
	b, err := w.Codec.Encode(&r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	seers    = []identity.Role{identity.RoleSupport, identity.RoleOperator, identity.RoleLead, identity.RoleAuditor}
	actors   = []identity.Role{identity.RoleOperator, identity.RoleLead}
	managers = []identity.Role{identity.RoleAgencyAdmin, identity.RoleSecurityOfficer}

	auditors       = []identity.Role{identity.RoleSecurityOfficer, identity.RoleAuditor}
	agencyAuditors = []identity.Role{identity.RoleAgencyAdmin}

	agencySeers    = []identity.Role{identity.RoleReader, identity.RoleAccountant, identity.RolePreparer, identity.RoleApprover, identity.RoleSupervisor}
	leaders        = []identity.Role{identity.RoleLead}
	approvers      = []identity.Role{identity.RoleApprover}
	accountants    = []identity.Role{identity.RoleAccountant}
	batchSeers     = []identity.Role{identity.RoleReader, identity.RoleAccountant, identity.RolePreparer, identity.RoleApprover}
	batchManagers  = []identity.Role{identity.RolePreparer, identity.RoleApprover}
	batchApprovers = []identity.Role{identity.RoleApprover}
	preparers      = []identity.Role{identity.RolePreparer}
	agencyDeciders = []identity.Role{identity.RoleAccountant, identity.RoleApprover}
)

// Each route of the router is asked by a person of each role, by one without a role and by nobody, about what exists and
// about what does not. An agency's people see no page of operations, and the service's no page of an agency. Whoever may not is answered the same bytes in both
// cases, and no page has a session id or contact data.
func TestWhoMaySeeAndDo(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	roles := append(identity.Roles(), "")
	browsers := map[identity.Role]*backoffice.Browser{}
	for n, role := range roles {
		name, agency, of := fmt.Sprintf("Personne %d", n), "", []identity.Role{role}
		if role == "" {
			of = nil
		} else if !role.OfService() {
			agency = "impots"
		}
		w.Add(t, agency, of, name)
		browsers[role] = w.Enter(t, name)
	}
	invitation, change, request, none := uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString()
	w.Write(t, `INSERT INTO staff_invitations (id, staff_id, roles, token_hash, invited_at, ends_at) VALUES ($1, $2, '{}', '\x00', $3, $3)`, invitation, w.IDs["Personne 0"], w.Now())
	w.Write(t, `INSERT INTO staff_changes (id, staff_id, kind, reason, proposed_by, proposed_at, state) VALUES ($1, $2, 'revoke', 'Départ', $2, $3, 'proposed')`, change, w.IDs["Personne 0"], w.Now())
	w.Add(t, "", nil, "Autre")
	w.Write(t, `INSERT INTO staff_requests (id, kind, asked_by, origin, subject, body, created_at, ends_at, state) VALUES ($1, 'reject', $2, '', $3, '{}', $4, $4, 'done')`, request, w.IDs["Autre"], change, w.Now())
	held := w.Import(t, backoffice.Statement(1, 0, 300), statements.VerdictAccepted)
	w.Exec(t, `INSERT INTO disbursement_batches (id, tenant_id, livemode, batch_ref, revision, status, held, opened_at, sequence, snapshot) VALUES ('dsb_1', $1, true, 'r', 1, 'draft', false, $2, 1, $3)`, registries.AgencyA, w.Now(), draft(t, w))
	line := batches.FromLine(disbursement.Line{LineKey: disbursement.LineKey{Batch: "dsb_1"}, Ref: "l", Status: disbursement.LineReady})
	snapshot, err := w.Codec.Encode(&line)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `INSERT INTO disbursement_lines (batch, position, line_ref, status, case_kind, sequence, snapshot, sealed) VALUES ('dsb_1', 0, 'l', 'ready', '', 1, $1, '')`, snapshot)
	asked, err := w.Jobs.Prepare(t.Context(), jobs.OnCommandLine(registries.Actor, identity.Staff{}), uuid.NewString(), jobs.KindRetry, jobs.Conditions{AgencyID: registries.AgencyA}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	existing := strings.NewReplacer("{job}", asked.ID, "{batch}", "dsb_1", "{line}", "1", "{place}", sessions.Place(w.Paid.ID), "{case}", backoffice.LateCase, "{kind}", "webhook", "{destination}", w.Endpoint, "{delivery}", w.Parked, "{number:[0-9]{1,4}}", "1",
		"{person}", w.IDs["Personne 0"], "{act}", "suspend", "{import}", held, "{what}", "release", "{invitation}", invitation, "{change}", change, "{request}", request)
	unknown := strings.NewReplacer("{job}", none, "{batch}", "dsb_none", "{line}", "1", "{place}", strings.Repeat("0", len(sessions.Place(w.Paid.ID))), "{case}", "case_none", "{kind}", "webhook", "{destination}", "none", "{delivery}", "dlv_none", "{number:[0-9]{1,4}}", "1",
		"{person}", none, "{act}", "suspend", "{import}", none, "{what}", "release", "{invitation}", none, "{change}", none, "{request}", none)
	open := []string{
		"GET /", "GET /sign-in", "POST /sign-in/begin", "POST /sign-in/finish", "POST /sign-out", "GET /join", "POST /join/accept", "POST /join/passkey/begin", "POST /join/passkey",
		"GET /sign-in/issuer", "GET /sign-in/issuers/{issuer}", "POST /sign-in/issuers/{issuer}/logout", "POST /join/issuer",
	}

	routes, cells, leaks := 0, 0, 0
	ask := func(b *backoffice.Browser, method, path string) (status int, body []byte) {
		if method == http.MethodGet {
			a := b.Get(path)
			return a.Code, a.Body.Bytes()
		}
		a := b.Post(path, url.Values{})
		return a.Code, a.Body.Bytes()
	}
	check := func(what string, status, want int, body []byte) {
		cells++
		if status != want {
			t.Errorf("%s: %d, want %d", what, status, want)
		}
		for _, secret := range []string{"chs_", backoffice.Contact, "awa@example.org", "erp-token", "whsec_"} {
			if bytes.Contains(body, []byte(secret)) {
				leaks++
				t.Errorf("%s shows %s", what, secret)
			}
		}
		if status == http.StatusForbidden && bytes.Contains(body, []byte(backoffice.PaidOrder)) {
			leaks++
			t.Errorf("%s names the order", what)
		}
	}
	r := chi.NewRouter()
	w.Site.Routes(r)
	err = chi.Walk(r, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		route := method + " " + pattern
		if strings.HasPrefix(pattern, "/assets/") || slices.Contains(open, route) {
			return nil
		}
		routes++
		rule, known := may[route]
		if !known {
			t.Errorf("nobody has said who may use %s", route)
			return nil
		}
		here, nowhere := existing.Replace(pattern), unknown.Replace(pattern)
		if strings.HasSuffix(pattern, "/file") {
			here, nowhere = here+"?format=csv", nowhere+"?format=csv"
		}
		nobody := http.StatusSeeOther
		if method == http.MethodPost {
			nobody = http.StatusUnauthorized
		}
		status, body := ask(w.NewBrowser(), method, here)
		check(route+" by nobody", status, nobody, body)
		for _, role := range roles {
			what := fmt.Sprintf("%s by %q", route, role)
			if rule.roles == nil || slices.Contains(rule.roles, role) {
				if method == http.MethodGet {
					status, body = ask(browsers[role], method, here)
					want := cmp.Or(rule.found, http.StatusOK)
					if rule.others {
						want = http.StatusNotFound
					}
					check(what, status, want, body)
				}
				status, body = ask(browsers[role], method, nowhere)
				want := rule.notFound
				if want == 0 {
					want = http.StatusNotFound
				}
				check(what+" of nothing", status, want, body)
				continue
			}
			status, one := ask(browsers[role], method, here)
			check(what, status, http.StatusForbidden, one)
			status, two := ask(browsers[role], method, nowhere)
			check(what+" of nothing", status, http.StatusForbidden, two)
			if !bytes.Equal(one, two) {
				leaks++
				t.Errorf("%s differs between what exists and what does not", what)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if routes != len(may) {
		t.Errorf("the router has %d routes, the table %d", routes, len(may))
	}
	t.Logf("routes=%d cells=%d leaks=%d", routes, cells, leaks)

	// Each refusal is in the audit table, with the route and without what was asked for.
	var refused int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'staff.refused' AND actor = $1 AND detail->>'route' = 'GET /ops/payments/{place}'`, w.IDs["Personne 0"]).Scan(&refused); err != nil || refused != 2 {
		t.Errorf("%d refusals of a reader are recorded, %v", refused, err)
	}
}
