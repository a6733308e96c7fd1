package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// ServiceCode is the catalogue service of the benchmark's sessions.
const ServiceCode = "patente"

// maxCreations is the highest quota that a registry file allows.
const maxCreations = 10_000_000

// Registry returns a registry file of n agencies with one application each, and the keys
// of the applications. The benchmark does not reach their quotas. Commands and state are
// partitioned by agency, so many agencies fill every partition. The keys are public: they
// are valid only in the installation that the benchmark starts.
func Registry(n int) (file []byte, keys []string) {
	var b strings.Builder
	b.WriteString("agencies:\n")
	for i := range n {
		key := fmt.Sprintf("sk_test_Bench%020d", i)
		keys = append(keys, key)
		fmt.Fprintf(&b, `  - id: %s
    slug: %s
    name: Benchmark %d
    services:
      - {id: 018f0000-0000-7000-8002-%012d, code: %s, label: "Contribution de la patente"}
    fees:
      - {channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 0, minimum: 0, maximum: 5000}
    applications:
      - id: %s
        name: Benchmark %d
        offers: [momo, momo_b, card, cash_agency]
        creations_per_minute: %d
        keys: [{secret: %s}]
`, AgencyID(i), AgencySlug(i), i, i, ServiceCode, ApplicationID(i), i, maxCreations, key)
	}
	return []byte(b.String()), keys
}

// AgencyID is the id of an agency of Registry, from 0.
func AgencyID(n int) string { return fmt.Sprintf("018f0000-0000-7000-8001-%012d", n) }

// AgencySlug is the slug of an agency of Registry.
func AgencySlug(n int) string { return "bench" + strconv.Itoa(n) }

// ApplicationID is the id of the application of an agency of Registry.
func ApplicationID(n int) string { return fmt.Sprintf("018f0000-0000-7000-8003-%012d", n) }
