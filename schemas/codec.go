package schemas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/linkedin/goavro/v2"
	"github.com/twmb/franz-go/pkg/sr"

	"quittance/schemas/record"
)

// ErrUndecodable says that bytes are not the expected record: they have no Confluent
// header, the registry does not know their schema id, they are a record of another type,
// or they are malformed Avro. A retry gives the same result; such a record goes to a
// poison topic.
var ErrUndecodable = errors.New("record cannot be decoded")

// headerSize is the size of the Confluent header: a zero byte and a schema id of four bytes.
const headerSize = 5

// Registry is a schema registry.
type Registry interface {
	// ID returns the id of a schema that is registered under the subject. If register is
	// set, it registers an unknown schema.
	ID(ctx context.Context, subject, schema string, register bool) (int, error)
	// IDs returns the ids of all versions of the subject.
	IDs(ctx context.Context, subject string) ([]int, error)
	// Schema returns the text of the schema with that id. The error wraps ErrUndecodable if
	// there is none.
	Schema(ctx context.Context, id int) (string, error)
}

// Codec encodes records as Kafka values and decodes them. Safe for concurrent use.
type Codec struct {
	registry Registry
	ids      map[string]uint32 // of the schemas that this build writes, by record name

	mu   sync.RWMutex
	byID map[uint32]version // all versions that this process has met
}

// version is one version of a record's schema. The zero value is an unknown version.
type version struct {
	name  string
	codec *goavro.Codec // nil for the schema that this build writes
}

// NewCodec looks up the schema of every record. With register (migrate, developer mode,
// tests) it registers unknown schemas; without, an unknown schema is an error. NewCodec
// also reads the other versions of each schema, so that decoding them does not need the
// registry later.
func NewCodec(ctx context.Context, registry Registry, register bool) (*Codec, error) {
	c := &Codec{registry: registry, ids: map[string]uint32{}, byID: map[uint32]version{}}
	for _, r := range record.All() {
		id, err := registry.ID(ctx, r.Name(), r.Schema(), register)
		if err != nil {
			return nil, fmt.Errorf("looking up schema %s (run `quittance migrate` first): %w", r.Name(), err)
		}
		uid := uint32(id) //nolint:gosec // registries count from 1
		c.ids[r.Name()], c.byID[uid] = uid, version{name: r.Name()}
		ids, err := registry.IDs(ctx, r.Name())
		if err != nil {
			return nil, fmt.Errorf("looking up the versions of schema %s: %w", r.Name(), err)
		}
		for _, id := range ids {
			if _, err := c.version(ctx, uint32(id)); err != nil { //nolint:gosec // registries count from 1
				return nil, fmt.Errorf("reading a version of schema %s: %w", r.Name(), err)
			}
		}
	}
	return c, nil
}

// Encode returns the record as a Kafka value. An error is a bug: a record without a
// schema.
func (c *Codec) Encode(r record.Record) ([]byte, error) {
	id, ok := c.ids[r.Name()]
	if !ok {
		return nil, fmt.Errorf("encoding %s: unknown schema", r.Name())
	}
	buf := scratch.Get().(*[]byte) //nolint:forcetypeassert // New makes nothing else
	*buf = append((*buf)[:0], 0)
	*buf = record.Append(binary.BigEndian.AppendUint32(*buf, id), r)
	value := bytes.Clone(*buf)
	scratch.Put(buf)
	return value, nil
}

// scratch holds buffers of Encode. Most records are much smaller than the largest, so a value
// gets memory of its own size.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Decode decodes value into r. Fields that an older version of the record did not know
// are zero. Errors wrap ErrUndecodable, except when the registry cannot be reached: the
// caller may then try again.
func (c *Codec) Decode(value []byte, r record.Record) error {
	if len(value) < headerSize || value[0] != 0 {
		return fmt.Errorf("decoding %s: no Confluent header: %w", r.Name(), ErrUndecodable)
	}
	id := binary.BigEndian.Uint32(value[1:])
	v, err := c.await(id)
	if err != nil {
		return fmt.Errorf("decoding %s: %w", r.Name(), err)
	}
	if v.name != r.Name() {
		return fmt.Errorf("decoding %s: schema %d is a schema of %s: %w", r.Name(), id, v.name, ErrUndecodable)
	}
	var rest []byte
	if v.codec == nil {
		rest, err = record.Parse(value[headerSize:], r)
	} else {
		var native any
		if native, rest, err = v.codec.NativeFromBinary(value[headerSize:]); err == nil {
			err = record.FromNative(r, native)
		}
	}
	if err != nil {
		return fmt.Errorf("decoding %s: %w: %w", r.Name(), ErrUndecodable, err)
	}
	if len(rest) != 0 {
		return fmt.Errorf("decoding %s: %d bytes follow the record: %w", r.Name(), len(rest), ErrUndecodable)
	}
	return nil
}

// NameOf returns the full Avro name of the record in a value, for topics with several
// records. Its errors are those of Decode.
func (c *Codec) NameOf(value []byte) (string, error) {
	if len(value) < headerSize || value[0] != 0 {
		return "", fmt.Errorf("no Confluent header: %w", ErrUndecodable)
	}
	v, err := c.await(binary.BigEndian.Uint32(value[1:]))
	return v.name, err
}

// registryPatience is how long Decode waits for a registry that cannot be reached. It asks
// the registry only for versions that are newer than this process.
const registryPatience = 10 * time.Second

// await returns the version with that id. It waits for a registry that cannot be reached.
func (c *Codec) await(id uint32) (version, error) {
	if v := c.known(id); v.name != "" {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), registryPatience)
	defer cancel()
	for {
		v, err := c.version(ctx, id)
		if err == nil || errors.Is(err, ErrUndecodable) || ctx.Err() != nil {
			return v, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *Codec) known(id uint32) version {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id]
}

// version returns the version with that id, from the registry if it is not known.
func (c *Codec) version(ctx context.Context, id uint32) (version, error) {
	if v := c.known(id); v.name != "" {
		return v, nil
	}
	text, err := c.registry.Schema(ctx, int(id))
	if err != nil {
		return version{}, err
	}
	codec, err := goavro.NewCodec(text)
	if err != nil {
		return version{}, fmt.Errorf("schema %d: %w: %w", id, ErrUndecodable, err)
	}
	full := codec.TypeName()
	v := version{full.String(), codec}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID[id] = v
	return v, nil
}

// Client is a Registry that uses the Confluent REST protocol.
type Client struct{ cl *sr.Client }

// callTimeout is the time that the registry has for its answer.
const callTimeout = 5 * time.Second

// NewClient creates a client of the registry at an http(s) address, which may have a user
// and a password. It calls the registry by via; by the system's transport when nil.
func NewClient(address string, via http.RoundTripper) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errors.New("the address of the schema registry is no URL such as https://host:port") // err may hold the password
	}
	var opts []sr.ClientOpt
	if password, has := u.User.Password(); has {
		opts = append(opts, sr.BasicAuth(u.User.Username(), password))
	}
	u.User = nil
	opts = append(opts, sr.URLs(u.String()), sr.HTTPClient(&http.Client{Transport: via, Timeout: callTimeout}))
	cl, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("schema registry %s: %w", u, err)
	}
	return &Client{cl}, nil
}

// ID implements Registry.
func (c *Client) ID(ctx context.Context, subject, schema string, register bool) (int, error) {
	look := c.cl.LookupSchema
	if register {
		look = func(ctx context.Context, subject string, s sr.Schema) (sr.SubjectSchema, error) {
			return c.cl.CreateSchema(ctx, subject, s)
		}
	}
	found, err := look(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	if err != nil {
		return 0, fmt.Errorf("schema registry, subject %s: %w", subject, err)
	}
	return found.ID, nil
}

// IDs implements Registry.
func (c *Client) IDs(ctx context.Context, subject string) ([]int, error) {
	versions, err := c.cl.Schemas(ctx, subject)
	if err != nil {
		return nil, fmt.Errorf("schema registry, subject %s: %w", subject, err)
	}
	ids := make([]int, len(versions))
	for i, v := range versions {
		ids[i] = v.ID
	}
	return ids, nil
}

// Schema implements Registry.
func (c *Client) Schema(ctx context.Context, id int) (string, error) {
	s, err := c.cl.SchemaByID(ctx, id)
	var answer *sr.ResponseError
	if errors.As(err, &answer) && answer.StatusCode == 404 {
		return "", fmt.Errorf("schema %d is not registered: %w", id, ErrUndecodable)
	}
	if err != nil {
		return "", fmt.Errorf("schema registry, schema %d: %w", id, err)
	}
	return s.Schema, nil
}
