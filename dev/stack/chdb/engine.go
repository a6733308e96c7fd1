package chdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is the part of libchdb's C interface that the bridge uses. Results and streams
// are handles of the library. They are never null and must be destroyed exactly once.
type library struct {
	connect   func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn func(conn unsafe.Pointer)

	query       func(conn uintptr, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, names, nameLens, values, valueLens unsafe.Pointer, count uintptr) uintptr
	streamQuery func(conn uintptr, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, names, nameLens, values, valueLens unsafe.Pointer, count uintptr) uintptr
	streamFetch func(conn, result uintptr) uintptr
	streamStop  func(conn, result uintptr)

	resultBuffer  func(result uintptr) unsafe.Pointer
	resultLength  func(result uintptr) uintptr
	resultError   func(result uintptr) string
	resultDestroy func(result uintptr)

	insert        func(conn uintptr, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, names, nameLens, values, valueLens unsafe.Pointer, count uintptr) uintptr
	insertAppend  func(stream uintptr, data unsafe.Pointer, n uintptr) int32
	insertDone    func(stream uintptr) uintptr
	insertError   func(stream uintptr) string
	insertDestroy func(stream uintptr)
}

func loadLibrary(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("loading libchdb: %w", err)
	}
	var l library
	for name, fn := range map[string]any{
		"chdb_connect":                     &l.connect,
		"chdb_close_conn":                  &l.closeConn,
		"chdb_query_with_params_n":         &l.query,
		"chdb_stream_query_with_params_n":  &l.streamQuery,
		"chdb_stream_fetch_result":         &l.streamFetch,
		"chdb_stream_cancel_query":         &l.streamStop,
		"chdb_result_buffer":               &l.resultBuffer,
		"chdb_result_length":               &l.resultLength,
		"chdb_result_error":                &l.resultError,
		"chdb_destroy_query_result":        &l.resultDestroy,
		"chdb_stream_insert_with_params_n": &l.insert,
		"chdb_stream_append":               &l.insertAppend,
		"chdb_stream_done":                 &l.insertDone,
		"chdb_stream_insert_error":         &l.insertError,
		"chdb_destroy_insert_stream":       &l.insertDestroy,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("libchdb at %s is older than 26.7.3, it has no %s: run `make deps`", path, name)
		}
		purego.RegisterFunc(fn, symbol)
	}
	return &l, nil
}

// engine is one data folder opened by libchdb. A process can have one.
type engine struct {
	lib     *library
	dir     string
	config  string // path of a configuration; may be empty
	version string

	connecting sync.Mutex
	// anchor keeps the folder open between requests. Without it the library would close
	// the folder with the last connection and stop its merges.
	anchor *session
}

// openEngine opens the data folder and restores the signal handlers. The first connection
// of a process replaces the handlers of nine signals, also that of SIGSEGV, without which a
// nil dereference in Go would hang instead of panicking. Later connections replace none
// (measured with 26.7.3).
func openEngine(lib *library, dir, config string) (*engine, error) {
	e := &engine{lib: lib, dir: dir, config: config}
	before, err := saveActions()
	if err != nil {
		return nil, err
	}
	e.anchor, err = e.open()
	if rerr := before.restore(); rerr != nil {
		return nil, errors.Join(err, rerr)
	}
	if err != nil {
		return nil, err
	}
	var version strings.Builder
	if err := e.anchor.query("SELECT version()", "TSVRaw", nil, func(b []byte) error {
		version.Write(b)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("asking the engine for its version: %w", err)
	}
	e.version = strings.TrimSpace(version.String())
	return e, nil
}

func (e *engine) close() { e.anchor.close() }

// session is a connection inside the engine. It has its own settings and current
// database, costs a fraction of a millisecond to make, and takes one statement
// at a time; different sessions run at the same time.
type session struct {
	lib    *library
	holder unsafe.Pointer // what chdb_connect returned: a pointer to the connection
	conn   uintptr
}

func (e *engine) open() (*session, error) {
	// The library parses these as a command line, in memory that all connections share.
	e.connecting.Lock()
	defer e.connecting.Unlock()
	args := [][]byte{[]byte("clickhouse\x00"), []byte("--path=" + e.dir + "\x00")}
	if e.config != "" {
		args = append(args, []byte("--config-file="+e.config+"\x00"))
	}
	argv := make([]unsafe.Pointer, len(args)+1)
	for i := range args {
		argv[i] = unsafe.Pointer(&args[i][0])
	}
	holder := e.lib.connect(int32(len(args)), unsafe.Pointer(&argv[0])) //nolint:gosec // three arguments
	runtime.KeepAlive(args)
	if holder == nil {
		return nil, fmt.Errorf("opening %s: the engine refused, its reason is in the log", e.dir)
	}
	return &session{lib: e.lib, holder: holder, conn: *(*uintptr)(holder)}, nil
}

func (s *session) close() { s.lib.closeConn(s.holder) }

// exception is an error of the engine with ClickHouse's text.
type exception struct{ text string }

func (e *exception) Error() string { return e.text }

func failure(text string) error {
	if text == "" {
		return nil
	}
	return &exception{text}
}

// cstring returns text as bytes for C. The slice is never empty, so that its address
// can be taken.
func cstring(s string) (unsafe.Pointer, uintptr) {
	b := append([]byte(s), 0)
	return unsafe.Pointer(&b[0]), uintptr(len(s))
}

// parameters are the values of {name:Type} placeholders in the form of the C interface:
// parallel arrays. They are on Go's heap, which does not move.
type parameters struct {
	names, values       []unsafe.Pointer
	nameLens, valueLens []uintptr
}

func encodeParameters(params map[string]string) *parameters {
	p := &parameters{}
	for name, value := range params {
		np, nl := cstring(name)
		vp, vl := cstring(value)
		p.names, p.nameLens = append(p.names, np), append(p.nameLens, nl)
		p.values, p.valueLens = append(p.values, vp), append(p.valueLens, vl)
	}
	return p
}

func (p *parameters) args() (names, nameLens, values, valueLens unsafe.Pointer, count uintptr) {
	if len(p.names) == 0 {
		return nil, nil, nil, nil, 0
	}
	return unsafe.Pointer(&p.names[0]), unsafe.Pointer(&p.nameLens[0]),
		unsafe.Pointer(&p.values[0]), unsafe.Pointer(&p.valueLens[0]), uintptr(len(p.names))
}

// bytes is the result's buffer, valid until the result is destroyed.
func (s *session) bytes(result uintptr) []byte {
	n := s.lib.resultLength(result)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(s.lib.resultBuffer(result)), n)
}

// query runs one statement and passes its whole result to emit, which must not keep it.
func (s *session) query(sql, format string, params map[string]string, emit func([]byte) error) error {
	q, n := cstring(sql)
	f, fn := cstring(format)
	p := encodeParameters(params)
	a, b, c, d, count := p.args()
	result := s.lib.query(s.conn, q, n, f, fn, a, b, c, d, count)
	runtime.KeepAlive(p)
	defer s.lib.resultDestroy(result)
	if err := failure(s.lib.resultError(result)); err != nil {
		return err
	}
	if out := s.bytes(result); len(out) > 0 && emit != nil {
		return emit(out)
	}
	return nil
}

// exec runs a statement and drops its result.
func (s *session) exec(sql string) error { return s.query(sql, "Null", nil, nil) }

// errNotStreamable is the library's answer to every statement except SELECT.
const errNotStreamable = "Streaming query is not supported"

// stream runs a SELECT and passes its result to emit in pieces. Each piece is complete in
// the format, with a header of its own if the format has one. When emit fails or ctx ends,
// it stops the query.
func (s *session) stream(ctx context.Context, sql, format string, params map[string]string, emit func([]byte) error) error {
	q, n := cstring(sql)
	f, fn := cstring(format)
	p := encodeParameters(params)
	a, b, c, d, count := p.args()
	handle := s.lib.streamQuery(s.conn, q, n, f, fn, a, b, c, d, count)
	runtime.KeepAlive(p)
	defer s.lib.resultDestroy(handle)
	if text := s.lib.resultError(handle); text != "" {
		if strings.Contains(text, errNotStreamable) {
			return s.query(sql, format, params, emit)
		}
		return failure(text)
	}
	for {
		more, err := s.fetch(handle, emit)
		if err == nil {
			err = ctx.Err()
		}
		var exc *exception
		switch {
		case errors.As(err, &exc): // the query has ended by itself
			return err
		case err != nil:
			s.lib.streamStop(s.conn, handle)
			return err
		case !more:
			return nil
		}
	}
}

func (s *session) fetch(handle uintptr, emit func([]byte) error) (more bool, err error) {
	piece := s.lib.streamFetch(s.conn, handle)
	defer s.lib.resultDestroy(piece)
	if err := failure(s.lib.resultError(piece)); err != nil {
		return false, err
	}
	out := s.bytes(piece)
	if len(out) == 0 {
		return false, nil
	}
	return true, emit(out)
}

// insertChunk is the size of the pieces of an insert's data. The library takes pieces that
// end anywhere.
const insertChunk = 1 << 20

// bodyError is the error of an incomplete request body.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "reading the data of the insert: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// insert runs an INSERT (without its FORMAT clause) with data in the format. The
// data is never part of the statement's text, where a blank line would end the statement
// and the rest would run as SQL. Interrupted data inserts nothing or only whole blocks,
// as in ClickHouse.
func (s *session) insert(sql, format string, params map[string]string, data io.Reader) error {
	q, n := cstring(sql)
	f, fn := cstring(format)
	p := encodeParameters(params)
	a, b, c, d, count := p.args()
	stream := s.lib.insert(s.conn, q, n, f, fn, a, b, c, d, count)
	runtime.KeepAlive(p)
	defer s.lib.insertDestroy(stream) // cancels what was not finished
	if err := failure(s.lib.insertError(stream)); err != nil {
		return err
	}
	buf := make([]byte, insertChunk)
	for ended := false; !ended; {
		n, err := fill(data, buf)
		if n > 0 && s.lib.insertAppend(stream, unsafe.Pointer(&buf[0]), uintptr(n)) != 0 {
			break // insertDone returns the reason
		}
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return &bodyError{err}
		}
	}
	result := s.lib.insertDone(stream)
	defer s.lib.resultDestroy(result)
	return failure(s.lib.resultError(result))
}

// fill reads until buf is full. Unlike io.ReadFull it returns errors unchanged: net/http
// returns ErrUnexpectedEOF for a client that disconnected, and io.ReadFull returns the
// same error for every incomplete last chunk.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}
