package secret

import (
	"crypto/sha256"
	"sync"
)

// public are the secrets of the demo registry (deploy/dev/registry.yaml) and of the
// simulators' merchant accounts. Everybody can read them.
var public = []string{
	"sk_test_PlatformDemoKey0000000000", "sk_live_PlatformDemoKey0000000000",
	"sk_test_GuichetDemoKey00000000000", "sk_live_GuichetDemoKey00000000000",
	"sk_test_DouaneDemoKey000000000000", "sk_live_DouaneDemoKey000000000000",
	"ck_test_Guichet1DemoKey0000000000", "ck_test_Guichet2DemoKey0000000000",
	"whsec_PlatformDemoSecret00000000000000", "whsec_GuichetDemoSecret000000000000000", "whsec_DouanesDemoSecret000000000000000",
	"ak_test_TimbresDemoKey00000000000", "as_test_TimbresDemoSecret00000000",
	"DemoErpTokenImpots000000", "DemoErpTokenDouanes00000",
	"simulator",
}

var publicDigests = sync.OnceValue(func() map[[sha256.Size]byte]bool {
	digests := map[[sha256.Size]byte]bool{}
	for _, s := range public {
		digests[sha256.Sum256([]byte(s))] = true
	}
	return digests
})

// IsDemo reports whether a secret is one of the demo registry or of the simulators, which
// only developer mode accepts.
func IsDemo(s Text) bool { return IsDemoDigest(sha256.Sum256([]byte(s.Reveal()))) }

// IsDemoDigest is IsDemo for the SHA-256 of a secret.
func IsDemoDigest(digest [sha256.Size]byte) bool { return publicDigests()[digest] }
