package web

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/ingress/problem"
	"quittance/internal/exemplar"
)

// Measure is middleware for the root router of the edge. It measures each request
// under the pattern of its route, never under its path, which may hold a secret:
// quittance_ingress_request_seconds by route, method and status, and
// quittance_ingress_errors_total, the answers with 5xx. That counter starts at 0. The id of
// problem.WithRequestID, which comes before it, is the example of a duration.
func Measure(reg prometheus.Registerer) func(http.Handler) http.Handler {
	with := promauto.With(reg)
	seconds := with.NewHistogramVec(prometheus.HistogramOpts{
		Name: "quittance_ingress_request_seconds", Help: "Duration of requests by route, method and status of the answer. Streams count when they end.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"route", "method", "status"})
	faults := with.NewCounter(prometheus.CounterOpts{
		Name: "quittance_ingress_errors_total", Help: "Requests answered with 5xx.",
	})
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			status := http.StatusInternalServerError // stays when the handler panics
			defer func() {
				if status >= http.StatusInternalServerError {
					faults.Inc()
				}
				exemplar.Observe(seconds.WithLabelValues(route(r), method(r.Method), strconv.Itoa(status)), time.Since(begun).Seconds(), exemplar.RequestID, problem.RequestID(r.Context()))
			}()
			next.ServeHTTP(wrapped, r)
			status = cmp.Or(wrapped.Status(), http.StatusOK)
		})
	}
}

// route returns the pattern that the request was routed by, or "none".
func route(r *http.Request) string {
	at := chi.RouteContext(r.Context())
	if at == nil {
		return "none"
	}
	whole := ""
	for _, pattern := range at.RoutePatterns {
		// The pattern of a sub-router continues that of its mount, or repeats the whole
		// path when the router was made on its own.
		base := strings.TrimSuffix(whole, "*")
		if !strings.HasPrefix(pattern, base) {
			pattern = strings.TrimSuffix(base, "/") + pattern
		}
		whole = pattern
	}
	return cmp.Or(whole, "none")
}

// method returns the label of a method. A caller cannot make new labels.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
