package runtime

import (
	"log/slog"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
)

// Headers of a processor's poison record. They follow the headers of schemas.Poison. A
// value that cannot be produced is omitted; headerOmitted has its size in bytes.
const (
	headerAttempts = "quittance-attempts"
	headerKind     = "quittance-kind"
	headerOmitted  = "quittance-value-omitted"
)

// Kinds of poison, the value of headerKind.
const (
	// poisonRecord: an input record.
	poisonRecord = "record"
	// poisonTick: the tick of an entry. Topic, key and value are the entry's; the offset
	// is -1.
	poisonTick = "tick"
)

// toPoison adds the poison record of rec to t. It goes to partition 0.
func (m *membership) toPoison(t *transaction, rec *kgo.Record, kind string, cause error, attempts int) {
	p := schemas.Poison(m.cfg.PoisonTopic, rec, cause, schemas.Header(headerAttempts, strconv.Itoa(attempts)), schemas.Header(headerKind, kind))
	if attempts >= bareFailures {
		p.Headers = append(p.Headers, schemas.Header(headerOmitted, strconv.Itoa(len(rec.Value))))
		p.Value = nil
	}
	t.poison++
	t.out = append(t.out, p)
	m.log.Error("the record cannot be decided and goes to the poison topic", slog.String("kind", kind), slog.String("topic", rec.Topic),
		slog.Int("partition", int(rec.Partition)), slog.Int64("offset", rec.Offset), slog.Int("attempts", attempts), slog.Any("error", cause))
}
