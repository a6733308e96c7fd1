package chdb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// serverContext is the server's part of decoding: columns without a time zone use the
// engine's.
var serverContext = column.ServerContext{Timezone: time.UTC}

// transcode turns Native blocks of revision 0, which is what the engine writes,
// into blocks of the client's revision. The two differ in the block's header
// and in a flag per column, so blocks are decoded and encoded again.
func transcode(blocks []byte, revision uint64) (encoded []byte, err error) {
	// The client library panics on some types that it does not know.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("transcoding a Native block: %v", p)
		}
	}()
	reader := chproto.NewReader(bytes.NewReader(blocks))
	out := chproto.Buffer{Buf: make([]byte, 0, len(blocks)+1024)}
	for {
		block := proto.Block{ServerContext: &serverContext}
		if err := block.Decode(reader, 0); errors.Is(err, io.EOF) {
			return out.Buf, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading a Native block of the engine: %w", err)
		}
		if err := block.Encode(&out, revision); err != nil {
			return nil, fmt.Errorf("writing a Native block for revision %d: %w", revision, err)
		}
	}
}
