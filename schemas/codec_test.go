package schemas_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkedin/goavro/v2"
	"pgregory.net/rapid"

	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/filled"
	"quittance/test/servers"
)

var release = flag.Bool("release", false, "write golden bytes for records whose schema has no golden version yet")

// numbered is a registry in memory. It numbers the schemas of this build in order; tests
// append the schemas of released versions.
type numbered struct{ texts []string }

func (n *numbered) ID(_ context.Context, _, schema string, _ bool) (int, error) {
	n.texts = append(n.texts, schema)
	return len(n.texts), nil
}

func (n *numbered) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (n *numbered) Schema(_ context.Context, id int) (string, error) {
	if id < 1 || id > len(n.texts) {
		return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
	}
	return n.texts[id-1], nil
}

func sample(r record.Record) record.Record {
	out := reflect.New(reflect.TypeOf(r).Elem())
	filled.Set(out.Elem())
	return out.Interface().(record.Record)
}

func TestRoundTripOverARegistry(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(ctx, client, true)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := schemas.NewCodec(ctx, client, false) // another process
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range record.All() {
		for _, in := range []record.Record{sample(r), reflect.New(reflect.TypeOf(r).Elem()).Interface().(record.Record)} {
			b, err := codec.Encode(in)
			if err != nil {
				t.Fatal(err)
			}
			out := reflect.New(reflect.TypeOf(r).Elem()).Interface().(record.Record)
			if err := reader.Decode(b, out); err != nil {
				t.Fatal(err)
			}
			again, err := codec.Encode(out)
			if err != nil || string(again) != string(b) {
				t.Errorf("%s: \n%+v\nbecame\n%+v (%v)", r.Name(), in, out, err)
			}
		}
		if want := sample(r); true {
			b, _ := codec.Encode(want)
			out := reflect.New(reflect.TypeOf(r).Elem()).Interface().(record.Record)
			_ = reader.Decode(b, out)
			if !reflect.DeepEqual(out, want) {
				t.Errorf("%s lost something:\n%+v\n%+v", r.Name(), want, out)
			}
		}
	}
}

// Golden bytes of every released version must decode for ever. A version is a schema and
// the bytes of a filled record. If the current schema has no version, `go test ./schemas
// -release` adds one, and a reviewer checks it.
func TestGoldenVersions(t *testing.T) {
	t.Parallel()
	for _, r := range record.All() {
		short := strings.TrimPrefix(r.Name(), "quittance.")
		versions, err := filepath.Glob(filepath.Join("testdata", short+".v*.avsc"))
		if err != nil {
			t.Fatal(err)
		}
		current := false
		for _, file := range versions {
			schema, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden, err := os.ReadFile(strings.TrimSuffix(file, ".avsc") + ".bin")
			if err != nil {
				t.Fatal(err)
			}
			reg := &numbered{}
			codec, err := schemas.NewCodec(t.Context(), reg, true)
			if err != nil {
				t.Fatal(err)
			}
			reg.texts = append(reg.texts, string(schema))
			id := len(reg.texts)
			value := append([]byte{0, 0, 0, byte(id >> 8), byte(id)}, golden...)
			out := reflect.New(reflect.TypeOf(r).Elem()).Interface().(record.Record)
			if err := codec.Decode(value, out); err != nil {
				t.Errorf("%s no longer decodes: %v", file, err)
				continue
			}
			if string(schema) != r.Schema() {
				continue // an older version: fields that it does not know are zero
			}
			current = true
			if want := sample(r); !reflect.DeepEqual(out, want) {
				t.Errorf("%s decodes to\n%+v\nwant\n%+v", file, out, want)
			}
			b, err := codec.Encode(sample(r))
			if err != nil || !strings.Contains(r.Schema(), "map") && string(b[5:]) != string(golden) {
				t.Errorf("%s: the wire bytes changed (%v)", file, err)
			}
		}
		if current {
			continue
		}
		if !*release {
			t.Errorf("%s: the schema has no golden version; when it is ready for release run `go test ./schemas -run Golden -release` and commit testdata", r.Name())
			continue
		}
		codec, err := schemas.NewCodec(t.Context(), &numbered{}, true)
		if err != nil {
			t.Fatal(err)
		}
		b, err := codec.Encode(sample(r))
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Join("testdata", fmt.Sprintf("%s.v%d", short, len(versions)+1))
		if err := errors.Join(os.WriteFile(base+".avsc", []byte(r.Schema()), 0o600), os.WriteFile(base+".bin", b[5:], 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUndecodable(t *testing.T) {
	t.Parallel()
	codec, err := schemas.NewCodec(t.Context(), &numbered{}, true)
	if err != nil {
		t.Fatal(err)
	}
	good, err := codec.Encode(sample(&record.Event{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "no header": []byte("{}"), "torn": good[:len(good)-3], "too long": append(good[:len(good):len(good)], 0),
		"unknown schema": {0, 0, 0, 99, 99, 0}, "another magic byte": append([]byte{1}, good[1:]...),
	} {
		if err := codec.Decode(b, &record.Event{}); !errors.Is(err, schemas.ErrUndecodable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := codec.Decode(good, &record.Reply{}); !errors.Is(err, schemas.ErrUndecodable) {
		t.Errorf("another record: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) { // no bytes make it panic
		b := append([]byte{0, 0, 0, 0, byte(rapid.IntRange(0, 20).Draw(t, "id"))}, rapid.SliceOf(rapid.Byte()).Draw(t, "body")...)
		_ = codec.Decode(b, &record.Event{})
	})
}

// The generated encoding has the same bytes as goavro's, except for the order of a map's
// keys. Each reads the bytes of the other.
func TestBinaryIsAvro(t *testing.T) {
	t.Parallel()
	for _, r := range record.All() {
		codec, err := goavro.NewCodec(r.Schema())
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []record.Record{sample(r), empty(r)} {
			ours := record.Append(nil, in)
			native, rest, err := codec.NativeFromBinary(ours)
			if err != nil || len(rest) > 0 {
				t.Fatalf("%s: goavro does not read ours: %v", r.Name(), err)
			}
			out := empty(r)
			if err := record.FromNative(out, native); err != nil || !reflect.DeepEqual(out, in) {
				t.Errorf("%s: goavro reads\n%+v\nof\n%+v (%v)", r.Name(), out, in, err)
			}
			theirs, err := codec.BinaryFromNative(nil, native)
			if err != nil {
				t.Fatal(err)
			}
			if string(ours) != string(theirs) {
				t.Errorf("%s: ours is\n%x\ngoavro's\n%x", r.Name(), ours, theirs)
			}
			back := sample(r) // Parse must overwrite every field
			if rest, err := record.Parse(theirs, back); err != nil || len(rest) > 0 || !reflect.DeepEqual(back, in) {
				t.Errorf("%s: we read\n%+v\nof\n%+v (%v)", r.Name(), back, in, err)
			}
			for n := range ours { // truncated bytes are an error
				if _, err := record.Parse(ours[:n], empty(r)); err == nil {
					t.Errorf("%s: %d of %d bytes pass for a record", r.Name(), n, len(ours))
				}
			}
		}
	}
}

// empty sets no field except the times that cannot be null, because goavro has no zero
// time.
func empty(r record.Record) record.Record {
	out := reflect.New(reflect.TypeOf(r).Elem())
	var walk func(v reflect.Value, name string)
	walk = func(v reflect.Value, name string) {
		for i := range v.NumField() {
			f, n := v.Field(i), v.Type().Field(i).Name
			switch {
			case f.Type() == reflect.TypeFor[time.Time]() && slices.Contains([]string{
				"CreatedAt", "ExpiresAt", "OccurredAt", "IssuedAt", "RequestedAt", "NotAfter", "WindowEndsAt", "ForgetAt", "At",
			}, n):
				f.Set(reflect.ValueOf(time.UnixMilli(0).UTC()))
			case name == "Token" && n == "ExpiresAt":
				f.Set(reflect.ValueOf(time.UnixMilli(0).UTC()))
			case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]():
				walk(f, f.Type().Name())
			}
		}
	}
	walk(out.Elem(), out.Elem().Type().Name())
	return out.Interface().(record.Record)
}

// away is a registry that refuses the first requests for schemas.
type away struct {
	*numbered
	refusals int
}

func (a *away) Schema(ctx context.Context, id int) (string, error) {
	if a.refusals--; a.refusals >= 0 {
		return "", errors.New("connection refused")
	}
	return a.numbered.Schema(ctx, id)
}

func TestRegistryThatIsAwayMakesNothingUndecodable(t *testing.T) {
	t.Parallel()
	reg := &away{&numbered{}, 2}
	codec, err := schemas.NewCodec(t.Context(), reg, true)
	if err != nil {
		t.Fatal(err)
	}
	value, err := codec.Encode(sample(&record.Event{}))
	if err != nil {
		t.Fatal(err)
	}
	reg.texts = append(reg.texts, (&record.Event{}).Schema()) // another process's version
	value[4] = byte(len(reg.texts))
	var out record.Event
	if err := codec.Decode(value, &out); err != nil || !reflect.DeepEqual(&out, sample(&record.Event{})) {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestTopicsNameKnownRecords(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, r := range record.All() {
		known[r.Name()] = false
	}
	seen := map[string]bool{}
	for _, topic := range schemas.Topics() {
		if seen[topic.Name] || topic.Partitions < 1 || topic.Key == "" {
			t.Errorf("topic %+v", topic)
		}
		seen[topic.Name] = true
		for _, name := range topic.Records {
			if _, ok := known[name]; !ok {
				t.Errorf("%s: no record %s", topic.Name, name)
			}
			known[name] = true
		}
	}
	for name, used := range known {
		if !used {
			t.Errorf("no topic carries %s", name)
		}
	}
}

func TestPartitionsNeverMove(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{"018f0000-0000-7000-8000-00000000000a": 0, "": 5, "018f0000-0000-7000-8000-00000000000b": 1} {
		if got := schemas.PartitionOf(key, 8); got != want {
			t.Errorf("%q lies in partition %d, want %d: every agency's state would be lost", key, got, want)
		}
	}
}
