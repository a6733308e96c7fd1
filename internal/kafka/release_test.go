package kafka_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/internal/kafka"
	"quittance/test/servers"
)

func TestWarning(t *testing.T) {
	t.Parallel()
	for release, c := range map[string]struct {
		level  int16
		warned bool
	}{"4.2": {29, false}, "4.3": {30, true}, "4.4": {31, false}} {
		said := kafka.WarningOf([]kmsg.ApiVersionsResponseSupportedFeature{
			{Name: "group.version", MaxVersion: 30}, {Name: "metadata.version", MinVersion: 7, MaxVersion: c.level},
		})
		if strings.Contains(said, "KAFKA-20734") != c.warned {
			t.Errorf("Kafka %s: %q", release, said)
		}
	}
	cl, err := kafka.Config{Brokers: []string{servers.Kafka(t)}}.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if said, err := kafka.Warning(t.Context(), cl); said != "" || err != nil {
		t.Errorf("the tests' own broker: %q, %v", said, err)
	}
}
