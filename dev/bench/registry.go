package bench

import (
	"fmt"
	"strings"
)

// ServiceCode is the catalogue service of the benchmark's sessions.
const ServiceCode = "patente"

// maxCreations is the highest quota that a registry file takes.
const maxCreations = 10_000_000

// Registry is a registry file of one agency with n applications whose quota the
// benchmark does not reach, and the key of each. The keys are known to all who
// read this: for a service in developer mode that the benchmark starts itself.
func Registry(n int) (file []byte, keys []string) {
	var b strings.Builder
	b.WriteString(`agencies:
  - id: 018f0000-0000-7000-8000-0000000b0000
    slug: bench
    name: Benchmark
    services:
      - {id: 018f0000-0000-7000-8000-0000000b0001, code: ` + ServiceCode + `, label: "Contribution de la patente"}
    fees:
      - {channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 0, minimum: 0, maximum: 5000}
    applications:
`)
	for i := range n {
		key := fmt.Sprintf("sk_test_Bench%020d", i)
		keys = append(keys, key)
		fmt.Fprintf(&b, `      - id: 018f0000-0000-7000-8001-%012d
        name: Benchmark %d
        offers: [momo, momo_b, card, cash_agency]
        creations_per_minute: %d
        keys: [{secret: %s}]
`, i, i, maxCreations, key)
	}
	return []byte(b.String()), keys
}
