package verify

import (
	"encoding/json"
	"net/http"
	"strings"

	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/batchseal"
	"quittance/internal/receipts"
	"quittance/money"
)

// fieldReceipt names the token in the form, alone or in the address of its code.
const fieldReceipt = "receipt"

// fieldOrder is the dossier number that somebody reads on the paper.
const fieldOrder = "order"

// view is the page.
type view struct {
	web.View
	W    *words
	Host string
	// Data is what the script needs to know, as JSON.
	Data string
	// Verdict is the sentence, More what to do then; empty before a check. Class marks it.
	Verdict, More, Class string
	// Facts says that the rows have values.
	Facts bool
	Rows  []row
}

// page returns the page without a result.
func (v *Verify) page(visit web.Visit) view {
	w := texts.In(visit.Lang)
	out := view{View: visit.View(w.Site, w.Title, ""), W: w, Host: v.cfg.Keys.Issuer(), Data: v.data(visit.Lang), Rows: w.rows(visit.Lang, receipts.Claims{}, "", "")}
	out.Script = visit.ScriptPath()
	return out
}

// data returns what the script needs to know.
func (v *Verify) data(lang money.Language) string {
	w := texts.In(lang)
	currencies := map[string][2]any{}
	for _, c := range money.All() {
		currencies[c.Code()] = [2]any{c.Decimals(), c.Symbol(lang)}
	}
	body, err := json.Marshal(map[string]any{
		"issuer": v.cfg.Keys.Issuer(), "lang": lang, "verdicts": w.Verdicts, "more": w.More, "served": w.Served, "unable": w.Unable,
		"channels": w.Channels, "partial": w.Partial, "noList": w.NoList, "orders": w.Orders, "unproven": w.Unproven, "testReversed": w.TestReversed, "currencies": currencies,
		"papers": map[string]any{"verdicts": w.Papers.Verdicts, "more": w.Papers.More, "states": w.Papers.States, "held": w.Papers.Held},
	})
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(body)
}

// show is GET /q.
func (v *Verify) show(w http.ResponseWriter, r *http.Request) {
	visit := v.site.Visit(w, r)
	p := v.page(visit)
	visit.Write(http.StatusOK, "check", &p)
}

// Answer is the result of POST /q as JSON. At is in seconds; a verdict `test` has it if the payment
// was reversed.
type Answer struct {
	Verdict receipts.Verdict `json:"verdict"`
	At      int64            `json:"at,omitempty"`
	Claims  *receipts.Claims `json:"claims,omitempty"`
	// Order is what the claims say of the field order: matches, differs, untyped, or unproven.
	Order orderResult `json:"order,omitempty"`
	// Paper is what the code of a certificate or an advice of a batch says. At is then that of the sentence.
	Paper *batchseal.Claims `json:"paper,omitempty"`
}

// check is POST /q: a check by the service, for browsers without scripts, and for receipts that
// only the record proves.
func (v *Verify) check(w http.ResponseWriter, r *http.Request) {
	visit := v.site.Visit(w, r)
	asJSON := strings.Contains(r.Header.Get("Accept"), "application/json")
	p := v.page(visit)
	typed := visit.Form.Get(fieldReceipt)
	refuse := func(status int, field, message string) {
		p.Fault(field, message, typed)
		visit.Write(status, "check", &p)
	}
	if limited := problem.From(v.cfg.Gate.Call(r)); limited != nil {
		if asJSON {
			problem.Write(w, r, limited)
			return
		}
		refuse(http.StatusTooManyRequests, "", p.W.Limited)
		return
	}
	if strings.TrimSpace(typed) == "" && !asJSON {
		refuse(http.StatusUnprocessableEntity, fieldReceipt, p.W.Missing)
		return
	}
	if batchseal.IsToken(typed) {
		v.answerPaper(w, r, visit, &p, typed, asJSON)
		return
	}
	keys, err := v.cfg.Keys.Keys(r.Context())
	var result receipts.Result
	if err == nil {
		result, err = keys.Check(r.Context(), v.cfg.Keys.Issuer(), typed, v.cfg.Now(), v.record)
	}
	switch {
	case err != nil && asJSON:
		v.unavailable(w, r, "checking a receipt", err)
	case err != nil:
		v.fault(r, "checking a receipt", err)
		refuse(http.StatusServiceUnavailable, "", p.L.Unavailable)
	case asJSON:
		v.writeResult(w, r, result, visit.Form.Get(fieldOrder))
	default:
		p.Typed[fieldReceipt], p.Typed[fieldOrder] = typed, visit.Form.Get(fieldOrder)
		p.show(visit.Lang, result, v.agency(result.Claims.Agency))
		visit.Write(http.StatusOK, "check", &p)
	}
}

// answerPaper answers with what the code of a paper of a batch says.
func (v *Verify) answerPaper(w http.ResponseWriter, r *http.Request, visit web.Visit, p *view, typed string, asJSON bool) {
	of := v.checkPaper(typed)
	if !asJSON {
		p.Typed[fieldReceipt] = typed
		p.showPaper(visit.Lang, of, v.agency(of.claims.Agency))
		visit.Write(http.StatusOK, "check", p)
		return
	}
	out := Answer{Verdict: of.verdict}
	if !of.at.IsZero() {
		out.At = of.at.Unix()
	}
	if of.claims.Kind != "" {
		out.Paper = &of.claims
	}
	v.writeAnswer(w, r, out)
}

// show puts a result into the page.
func (p *view) show(lang money.Language, result receipts.Result, agency string) {
	p.Verdict, p.More, p.Class = Sentence(lang, result), p.W.More[result.Verdict], "warn"
	if result.Verdict == receipts.VerdictAuthentic && orderOf(result.Claims, p.Typed[fieldOrder]) != orderDiffers {
		p.Class = "notice"
	}
	p.Facts = result.Claims.ID != ""
	p.Rows = p.W.rows(lang, result.Claims, agency, p.Typed[fieldOrder])
}

func (v *Verify) writeResult(w http.ResponseWriter, r *http.Request, result receipts.Result, order string) {
	out := Answer{Verdict: result.Verdict}
	if !result.At.IsZero() {
		out.At = result.At.Unix()
	}
	if result.Claims.ID != "" {
		out.Claims, out.Order = &result.Claims, orderOf(result.Claims, order)
	}
	v.writeAnswer(w, r, out)
}

func (v *Verify) writeAnswer(w http.ResponseWriter, r *http.Request, out Answer) {
	body, err := json.Marshal(out)
	if err != nil {
		v.unavailable(w, r, "encoding a result", err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body)
}
