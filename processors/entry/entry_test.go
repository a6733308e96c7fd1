package entry_test

import (
	"errors"
	"testing"
	"time"

	"quittance/processors/entry"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/servers"
)

// state is a transaction that commits at once. Get fails with err.
type state struct {
	values map[string][]byte
	err    error
}

func (s *state) Get(key []byte) ([]byte, error)     { return s.values[string(key)], s.err }
func (s *state) Put(key, value []byte, _ time.Time) { s.values[string(key)] = value }
func (s *state) Delete(key []byte)                  { delete(s.values, string(key)) }
func (s *state) has(key string) bool                { _, ok := s.values[key]; return ok }

func till() entry.Record[record.Till] {
	return entry.Of(func(t record.Till) record.Till { return t }, func(r *record.Till) record.Till { return *r })
}

var (
	kept      = entry.Entry[string, record.Till]{Letter: 'k', Key: entry.Text, Record: till()}
	forgotten = entry.Entry[string, record.Till]{
		Letter: 'f', Key: entry.Text, Record: till(),
		Empty:    func(t record.Till) bool { return t == record.Till{} },
		ForgetAt: func(t record.Till) time.Time { return time.Unix(t.Taken, 0) },
	}
	waking = entry.Entry[string, record.Till]{
		Letter: 'w', Key: entry.Text, Record: till(),
		WakeAt: func(t record.Till) time.Time { return time.Unix(t.Taken, 0) },
	}
	kinds = entry.NewKinds(&kept, &forgotten, &waking)
)

func newCodec(t *testing.T) *schemas.Codec {
	t.Helper()
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), client, true)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// A tick deletes what is forgotten, wakes what its processor decides about, and leaves the others.
func TestTicks(t *testing.T) {
	t.Parallel()
	codec, tx := newCodec(t), &state{values: map[string][]byte{}}
	s := entry.NewState(tx, codec)
	for _, e := range []*entry.Entry[string, record.Till]{&kept, &forgotten, &waking} {
		e.Put(s, map[string]record.Till{"id\x00rest": {Taken: 7}})
	}
	var woken []string
	for key, deadline := range map[string]time.Time{"k\x00id\x00rest": {}, "f\x00id\x00rest": time.Unix(7, 0), "w\x00id\x00rest": time.Unix(7, 0)} {
		if !tx.has(key) {
			t.Fatalf("%q is not in %q", key, tx.values)
		}
		if at := kinds.Deadline(codec, []byte(key), tx.values[key]); !at.Equal(deadline) {
			t.Errorf("%q has the deadline %v, want %v", key, at, deadline)
		}
		if err := kinds.Tick(tx, []byte(key), func(letter byte, id string) error { woken = append(woken, string(letter)+id); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(woken) != 1 || woken[0] != "wid\x00rest" {
		t.Errorf("woken: %q", woken)
	}
	if !tx.has("k\x00id\x00rest") || tx.has("f\x00id\x00rest") || !tx.has("w\x00id\x00rest") {
		t.Errorf("left: %q", tx.values)
	}
}

// The processor is woken at once for an entry that cannot be decoded. Other kinds keep it: nobody
// may delete what nobody can read.
func TestUndecodableEntries(t *testing.T) {
	t.Parallel()
	codec := newCodec(t)
	for key, want := range map[string]time.Time{"k\x00id": {}, "f\x00id": {}, "w\x00id": time.Unix(0, 0), "x\x00id": {}, "w": {}, "": {}} {
		if at := kinds.Deadline(codec, []byte(key), []byte("no record")); !at.Equal(want) {
			t.Errorf("%q has the deadline %v, want %v", key, at, want)
		}
	}
	s := entry.NewState(&state{values: map[string][]byte{"k\x00id": []byte("no record")}}, codec)
	if v, ok := kept.Get(s, "id"); ok || v != (record.Till{}) || !errors.Is(s.Err(), schemas.ErrUndecodable) {
		t.Errorf("read %v (%v): %v", v, ok, s.Err())
	}
}

// Nothing is read or written after the first error.
func TestFirstErrorStays(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tx := &state{values: map[string][]byte{"k\x00id": nil}, err: broken}
	s := entry.NewState(tx, newCodec(t))
	kept.Value(s, "id")
	tx.err = nil
	kept.Put(s, map[string]record.Till{"other": {Taken: 1}})
	kept.Delete(s, "id")
	if !errors.Is(s.Err(), broken) || tx.has("k\x00other") || !tx.has("k\x00id") {
		t.Errorf("%v, state %q", s.Err(), tx.values)
	}
}

// An empty value is the absence of an entry.
func TestEmptyValues(t *testing.T) {
	t.Parallel()
	tx := &state{values: map[string][]byte{}}
	s := entry.NewState(tx, newCodec(t))
	forgotten.Put(s, map[string]record.Till{"id": {Taken: 7}})
	if v, ok := forgotten.Get(s, "id"); !ok || v.Taken != 7 {
		t.Fatalf("read %v (%v): %v", v, ok, s.Err())
	}
	forgotten.Put(s, map[string]record.Till{"id": {}})
	if _, ok := forgotten.Get(s, "id"); ok || len(tx.values) > 0 {
		t.Errorf("left: %q", tx.values)
	}
}

func TestLettersAreDistinct(t *testing.T) {
	t.Parallel()
	for _, list := range [][]entry.Kind{{&kept, &kept}, {&entry.Entry[string, record.Till]{}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is accepted", list)
				}
			}()
			entry.NewKinds(list...)
		}()
	}
}
