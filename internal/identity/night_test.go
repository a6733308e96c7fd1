package identity_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/identity"
	"quittance/test/office"
	"quittance/test/registries"
)

// Somebody changed what a passkey had signed, and nobody noticed until a person ran `decisions verify`. It is noticed at night.
func TestNight(t *testing.T) {
	o := office.Open(t, "impots", []identity.Role{identity.RoleApprover}, "Awa", "Ben")
	for name, subject := range map[string]string{"Awa": "case_one#1", "Ben": "case_two#3"} {
		s := office.Statement(subject)
		if _, err := o.Prove(t, o.Signs(t, o.Acting(t, name), name, s), s); err != nil {
			t.Fatal(err)
		}
	}
	var now atomic.Int64
	now.Store(registries.Epoch.Unix())
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	night, err := identity.NewNight(identity.NightConfig{
		Pool: o.Pool, Keys: o.Keys, Every: 5 * time.Millisecond, Now: func() time.Time { return time.Unix(now.Load(), 0) }, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- night.Run(ctx) }()
	found := func(name string, fault identity.ProofFault) (value float64) {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name && (fault == "" || m.GetLabel()[0].GetValue() == string(fault)) {
					value += m.GetGauge().GetValue()
				}
			}
		}
		return value
	}
	const gauge, verified = "quittance_decisions_not_holding", "quittance_decisions_verified_timestamp_seconds"
	begun := found(verified, "")
	now.Add(24 * 3600)
	registries.Within(t, time.Minute, "a night without a fault", func() bool { return found(verified, "") > begun })
	for _, f := range identity.ProofFaults() {
		if found(gauge, f) != 0 {
			t.Errorf("%s in the night without a fault", f)
		}
	}
	o.Exec(t, `UPDATE decisions SET verdict = 'rejected' WHERE subject = 'case_one#1'`)
	o.Exec(t, `UPDATE decisions SET assertion = '\x00' WHERE subject = 'case_two#3'`)
	now.Add(24 * 3600)
	registries.Within(t, time.Minute, "the night", func() bool {
		return found(gauge, identity.ProofOtherStatement) == 1 && found(gauge, identity.ProofNotSigned) == 1
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"fault=other_statement", "fault=not_signed", "case_one#1", "person=Awa"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has not %q:\n%s", want, log.String())
		}
	}
}
