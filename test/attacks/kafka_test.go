package attacks_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/linkedin/goavro/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/client"
)

// forgeOutcome copies the command that completed one payment, and makes it another's.
func forgeOutcome(i *installation) error {
	paid, open := i.completed("OUTCOME-1"), i.create(order("OUTCOME-2"))
	i.pay(open, waits)
	if _, err := i.Collected(i.t.Context(), open); err != nil {
		i.t.Fatal(err)
	}
	records := i.records("checkout.commands")
	template, native := i.find(records, func(m map[string]any) bool {
		return m["session_id"] == paid.ID && of(m["outcome"])["status"] == "approved"
	})
	collect, own := i.find(records, func(m map[string]any) bool { return m["session_id"] == open.ID && m["collect"] != nil })
	native["session_id"] = open.ID
	of(native["outcome"])["collection_id"] = of(own["collect"])["collection_id"]
	forged := i.encode(template.Value, native)
	return errors.Join(
		i.produce(&kgo.Record{Topic: template.Topic, Partition: collect.Partition, Key: []byte(open.ID), Value: forged, Headers: template.Headers}),
		i.becomes(open.ID, "completed"),
	)
}

// forgeWebhook copies the notification about one payment, and makes it another's.
func forgeWebhook(i *installation) error {
	paid, open := i.completed("WEBHOOK-1"), i.create(order("WEBHOOK-2"))
	if err := i.received(paid, "checkout.completed"); err != nil {
		i.t.Fatal(err)
	}
	template, native := i.find(i.records("webhooks"), func(m map[string]any) bool { return m["session_id"] == paid.ID })
	id, _ := native["event_id"].(string)
	body, _ := native["body"].([]byte)
	other := id[:len(id)-1] + map[bool]string{true: "1", false: "0"}[strings.HasSuffix(id, "0")]
	for from, to := range map[string]string{paid.ID: open.ID, paid.PaymentRef: open.PaymentRef, "WEBHOOK-1": "WEBHOOK-2", id: other} {
		body = bytes.ReplaceAll(body, []byte(from), []byte(to))
	}
	native["session_id"], native["event_id"], native["body"] = open.ID, other, body
	forged := i.encode(template.Value, native)
	return errors.Join(i.produce(&kgo.Record{Topic: template.Topic, Partition: template.Partition, Key: []byte(open.ID), Value: forged, Headers: template.Headers}), i.received(open, "checkout.completed"))
}

// received waits for a webhook about a session and an event that the service has signed.
func (i *installation) received(s client.Session, event string) error {
	return within(func() error {
		a, err := i.Send(i.t.Context(), http.MethodGet, i.Simulators+"/inbox/guichet", "")
		if err != nil {
			return err
		}
		var inbox []struct {
			Body  string `json:"body"`
			Valid *bool  `json:"signature_valid"`
		}
		if err := json.Unmarshal(a.Body, &inbox); err != nil {
			return err
		}
		for _, m := range inbox {
			if strings.Contains(m.Body, s.ID) && strings.Contains(m.Body, event) && m.Valid != nil && *m.Valid {
				return nil
			}
		}
		return errNothing
	})
}

// of returns the record of a union of goavro.
func of(union any) map[string]any {
	outer, _ := union.(map[string]any)
	for _, inner := range outer {
		record, _ := inner.(map[string]any)
		return record
	}
	return map[string]any{}
}

func (i *installation) kafka(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers("127.0.0.1:"+strconv.Itoa(i.port+2)))...)
}

// records reads a topic from its beginning.
func (i *installation) records(topic string) (out []*kgo.Record) {
	i.t.Helper()
	cl, err := i.kafka(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		i.t.Fatal(err)
	}
	defer cl.Close()
	for empty := 0; empty < 3; {
		ctx, cancel := context.WithTimeout(i.t.Context(), time.Second)
		fetches := cl.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			empty++
		}
		out = append(out, fetches.Records()...)
	}
	return out
}

func (i *installation) produce(r *kgo.Record) error {
	cl, err := i.kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.ProduceSync(i.t.Context(), r).FirstErr()
}

// find returns the first record with a content, and the content, or ends the test.
func (i *installation) find(records []*kgo.Record, is func(map[string]any) bool) (*kgo.Record, map[string]any) {
	i.t.Helper()
	for _, r := range records {
		native, _, err := i.codec(r.Value).NativeFromBinary(r.Value[5:])
		if err != nil {
			i.t.Fatal(err)
		}
		if m, ok := native.(map[string]any); ok && is(m) {
			return r, m
		}
	}
	i.t.Fatalf("none of %d records is the one to copy", len(records))
	return nil, nil
}

// codec returns the schema with which a record was written. A record begins with zero and its id.
func (i *installation) codec(value []byte) *goavro.Codec {
	i.t.Helper()
	id := binary.BigEndian.Uint32(value[1:5])
	a, err := i.Send(i.t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(i.port+6)+"/schemas/ids/"+strconv.FormatUint(uint64(id), 10), "")
	var known struct {
		Schema string `json:"schema"`
	}
	codec := (*goavro.Codec)(nil)
	if err == nil {
		err = json.Unmarshal(a.Body, &known)
	}
	if err == nil {
		codec, err = goavro.NewCodec(known.Schema)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	return codec
}

// encode writes a content with the schema of another record.
func (i *installation) encode(like []byte, native map[string]any) []byte {
	i.t.Helper()
	out, err := i.codec(like).BinaryFromNative(bytes.Clone(like[:5]), native)
	if err != nil {
		i.t.Fatal(err)
	}
	return out
}
