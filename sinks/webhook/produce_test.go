package webhook_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	deliverytest "quittance/test/deliveries"
)

// produce writes bytes to a topic as they are.
func produce(t testing.TB, b *deliverytest.Bench, topic, key string, value []byte) {
	t.Helper()
	cl, err := b.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: b.Kafka.Prefix + topic, Key: []byte(key), Value: value}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
