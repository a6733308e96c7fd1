package roles

import (
	"testing"

	"quittance/internal/sessions"
	"quittance/test/servers"
	testtopics "quittance/test/topics"
)

// The login of match reads all tables that the night compares, and no more is needed for it. That of tidy, which reads none of
// them, is refused, so that the comparison is known to ask for them.
func TestMatchComparesTheReadModel(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	on := testtopics.Make(t, 1)
	for name, may := range map[string]bool{"match": true, ClientOperator: true, "tidy": false} {
		_, err := sessions.NewStore(open(t, servers.Login(t, dsn, name))).Verify(t.Context(), sessions.VerifyConfig{Kafka: on.Kafka, Codec: on.Codec})
		if (err == nil) != may {
			t.Errorf("%s: %v", name, err)
		}
	}
}
