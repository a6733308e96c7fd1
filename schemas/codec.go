package schemas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/linkedin/goavro/v2"
	"github.com/twmb/franz-go/pkg/sr"

	"quittance/schemas/record"
)

// ErrUndecodable says that bytes are no record: no Confluent header, an id the
// registry does not know, another record than was asked for, or torn Avro.
// Such a record goes to a poison topic; asking again gives the same answer.
var ErrUndecodable = errors.New("record cannot be decoded")

// headerSize is the Confluent header: a zero byte and four bytes of schema id.
const headerSize = 5

// Registry is what a Codec needs of a schema registry.
type Registry interface {
	// ID is the registered schema's id under the subject; with register set an
	// unknown schema is added.
	ID(ctx context.Context, subject, schema string, register bool) (int, error)
	// IDs are those of all versions under the subject.
	IDs(ctx context.Context, subject string) ([]int, error)
	// Schema is the text of a schema by id, wrapping ErrUndecodable when there is none.
	Schema(ctx context.Context, id int) (string, error)
}

// Codec turns records into Kafka values and back. Safe for concurrent use.
type Codec struct {
	registry Registry
	byName   map[string]writer // what this build writes

	mu   sync.RWMutex
	byID map[uint32]*goavro.Codec // what was ever written, as far as it was met
	name map[uint32]string
}

type writer struct {
	id    uint32
	codec *goavro.Codec
}

// NewCodec looks up every record's schema. With register (migrate, developer
// mode, tests) unknown ones are added; without, an unknown one is an error that
// names the mend. Older versions are read now, so that a record which one of them
// wrote does not need the registry later.
func NewCodec(ctx context.Context, registry Registry, register bool) (*Codec, error) {
	c := &Codec{registry: registry, byName: map[string]writer{}, byID: map[uint32]*goavro.Codec{}, name: map[uint32]string{}}
	for _, r := range record.All() {
		codec, err := goavro.NewCodec(r.Schema())
		if err != nil {
			return nil, fmt.Errorf("reading schema %s: %w", r.Name(), err)
		}
		id, err := registry.ID(ctx, r.Name(), r.Schema(), register)
		if err != nil {
			return nil, fmt.Errorf("looking up schema %s (run `quittance migrate` first): %w", r.Name(), err)
		}
		uid := uint32(id) //nolint:gosec // registries count from 1
		c.byName[r.Name()] = writer{uid, codec}
		c.byID[uid], c.name[uid] = codec, r.Name()
		ids, err := registry.IDs(ctx, r.Name())
		if err != nil {
			return nil, fmt.Errorf("looking up the versions of schema %s: %w", r.Name(), err)
		}
		for _, id := range ids {
			if _, _, err := c.reader(ctx, uint32(id)); err != nil { //nolint:gosec // registries count from 1
				return nil, fmt.Errorf("reading a version of schema %s: %w", r.Name(), err)
			}
		}
	}
	return c, nil
}

// Encode is the record as a Kafka value. An error is a fault of the program: a
// record without a schema.
func (c *Codec) Encode(r record.Record) ([]byte, error) {
	w, ok := c.byName[r.Name()]
	if !ok {
		return nil, fmt.Errorf("encoding %s: no such schema", r.Name())
	}
	buf := make([]byte, headerSize, 1024)
	binary.BigEndian.PutUint32(buf[1:], w.id)
	return record.Append(buf, r), nil
}

// Decode sets r to what value holds. An older version of the record decodes
// with the fields it did not know at zero. Errors wrap ErrUndecodable, except
// for a registry that cannot be reached, which is worth another try.
func (c *Codec) Decode(value []byte, r record.Record) error {
	if len(value) < headerSize || value[0] != 0 {
		return fmt.Errorf("decoding %s: no Confluent header: %w", r.Name(), ErrUndecodable)
	}
	id := binary.BigEndian.Uint32(value[1:])
	codec, name, err := c.await(id)
	if err != nil {
		return fmt.Errorf("decoding %s: %w", r.Name(), err)
	}
	if name != r.Name() {
		return fmt.Errorf("decoding %s: schema %d is of %s: %w", r.Name(), id, name, ErrUndecodable)
	}
	var rest []byte
	if id == c.byName[name].id {
		rest, err = record.Parse(value[headerSize:], r)
	} else { // of another version
		var native any
		if native, rest, err = codec.NativeFromBinary(value[headerSize:]); err == nil {
			err = record.FromNative(r, native)
		}
	}
	if err != nil {
		return fmt.Errorf("decoding %s: %w: %w", r.Name(), ErrUndecodable, err)
	}
	if len(rest) != 0 {
		return fmt.Errorf("decoding %s: %d bytes too many: %w", r.Name(), len(rest), ErrUndecodable)
	}
	return nil
}

// registryPatience is how long a record of a version that is newer than this
// process waits for a registry that is away, each time it is decoded.
const registryPatience = 10 * time.Second

// await is reader for a registry that may be away for a moment: a record must not
// be taken for undecodable because of that.
func (c *Codec) await(id uint32) (*goavro.Codec, string, error) {
	if codec, name := c.known(id); codec != nil {
		return codec, name, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), registryPatience)
	defer cancel()
	for {
		codec, name, err := c.reader(ctx, id)
		if err == nil || errors.Is(err, ErrUndecodable) || ctx.Err() != nil {
			return codec, name, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *Codec) known(id uint32) (*goavro.Codec, string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id], c.name[id]
}

func (c *Codec) reader(ctx context.Context, id uint32) (*goavro.Codec, string, error) {
	codec, name := c.known(id)
	if codec != nil {
		return codec, name, nil
	}
	text, err := c.registry.Schema(ctx, int(id))
	if err != nil {
		return nil, "", err
	}
	codec, err = goavro.NewCodec(text)
	if err != nil {
		return nil, "", fmt.Errorf("schema %d: %w: %w", id, ErrUndecodable, err)
	}
	full := codec.TypeName()
	name = full.String()
	c.mu.Lock()
	c.byID[id], c.name[id] = codec, name
	c.mu.Unlock()
	return codec, name, nil
}

// Client is a Registry over the Confluent REST protocol. franz-go's sr speaks it.
type Client struct{ cl *sr.Client }

// NewClient makes a client for the registry at an http(s) address.
func NewClient(url string) (*Client, error) {
	cl, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		return nil, fmt.Errorf("schema registry %s: %w", url, err)
	}
	return &Client{cl}, nil
}

// ID looks the schema up under its subject, or registers it.
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

// IDs are the ids of all versions of the subject.
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

// Schema is a schema by id.
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
