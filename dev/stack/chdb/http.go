package chdb

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxQuery is the longest text of a query. ClickHouse's own limit
	// (max_query_size) is below it; an insert's data does not count.
	maxQuery = 1 << 20
	// maxSessions is the number of queries that run at the same time; others wait.
	maxSessions = 8
	// maxMemory is the default of the setting max_memory_usage. A query that needs more
	// fails, and the process continues.
	maxMemory = 2 << 30
)

// bridge answers ClickHouse's HTTP protocol from an engine.
type bridge struct {
	engine  *engine
	log     *slog.Logger
	maxBody int64
	slots   chan struct{}
}

func newBridge(e *engine, log *slog.Logger, maxBody int64) *bridge {
	return &bridge{engine: e, log: log, maxBody: maxBody, slots: make(chan struct{}, maxSessions)}
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-ClickHouse-Server-Display-Name", "quittance")
	w.Header().Set("X-ClickHouse-Timezone", "UTC")
	if !b.local(r) {
		http.Error(w, "this ClickHouse is for programs on this machine, not for web pages", http.StatusForbidden)
		return
	}
	switch {
	case r.URL.Path == "/ping", r.URL.Path == "/" && r.Method == http.MethodGet && r.URL.RawQuery == "":
		_, _ = io.WriteString(w, "Ok.\n")
	case r.URL.Path != "/":
		http.Error(w, "There is no handle "+r.URL.Path+"\n\nUse / for queries or /ping for health checks.", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "send a query with GET or POST", http.StatusMethodNotAllowed)
	default:
		b.serveQuery(w, r)
	}
}

// local refuses requests that a web page made. The bridge has no password, and any page
// in the developer's browser can send requests to loopback, also under another host name.
func (b *bridge) local(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	named := host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil
	site := r.Header.Get("Sec-Fetch-Site")
	return named && r.Header.Get("Origin") == "" && (site == "" || site == "none" || site == "same-origin")
}

func (b *bridge) serveQuery(w http.ResponseWriter, r *http.Request) {
	out := &answer{w: w, version: b.engine.version, id: r.URL.Query().Get("query_id")}
	if out.id == "" {
		out.id = rand.Text()
	}
	w.Header().Set("X-ClickHouse-Query-Id", out.id)
	begun := time.Now()
	err := b.run(out, r)
	if err != nil {
		out.fail(err)
	}
	level := slog.LevelDebug
	if err != nil {
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{slog.String("query_id", out.id), slog.Duration("took", time.Since(begun)), slog.Int64("bytes", out.sent)}
	if err != nil {
		// The engine's text may quote data; its code does not.
		attrs = append(attrs, slog.Int("code", exceptionCode(err)))
	}
	b.log.LogAttrs(r.Context(), level, "query", attrs...)
}

// request is a query with the parameters of its URL and headers.
type request struct {
	statement
	database string
	format   string // of the answer
	revision uint64 // of Native blocks that the client reads
	params   map[string]string
	settings map[string]string
	readonly bool
	data     io.Reader // of an insert
}

func (b *bridge) run(out *answer, r *http.Request) error {
	req, err := b.parse(out.w, r)
	if err != nil {
		return err
	}
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-r.Context().Done():
		return fmt.Errorf("waiting for another query to end: %w", r.Context().Err())
	}
	// The engine keeps the state of a query in thread-local variables.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := b.engine.open()
	if err != nil {
		return err
	}
	defer s.close()
	if err := prepare(s, req); err != nil {
		return err
	}
	if req.insertFormat != "" {
		return s.insert(req.text, req.insertFormat, req.params, req.data)
	}
	out.format = req.format
	if strings.EqualFold(req.format, "Native") {
		out.revision = req.revision
	}
	if req.selects && streams(req.format) {
		return s.stream(r.Context(), req.text, req.format, req.params, out.send)
	}
	return s.query(req.text, req.format, req.params, out.send)
}

// prepare sets the query's database and settings. Each HTTP request has its own
// connection, so that no request sees the settings of another.
func prepare(s *session, req *request) error {
	if req.database != "" {
		if err := s.exec("USE " + quote('`', req.database)); err != nil {
			return err
		}
	}
	sets := []string{"max_memory_usage = " + strconv.Itoa(maxMemory)}
	for name, value := range req.settings {
		sets = append(sets, name+" = "+quote('\'', value))
	}
	slices.Sort(sets[1:])
	if err := s.exec("SET " + strings.Join(sets, ", ")); err != nil {
		return err
	}
	if req.readonly {
		return s.exec("SET readonly = 2")
	}
	return nil
}

func quote(q byte, s string) string {
	return string(q) + strings.NewReplacer(`\`, `\\`, string(q), `\`+string(q)).Replace(s) + string(q)
}

// notSettings are the protocol's parameters that are not settings.
var notSettings = map[string]bool{
	"query": true, "database": true, "default_format": true, "client_protocol_version": true, "query_id": true,
	"quota_key": true, "user": true, "password": true, "role": true, "buffer_size": true, "wait_end_of_query": true,
	"session_timeout": true, "session_check": true, "stacktrace": true, "close_session": true,
}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

func (b *bridge) parse(w http.ResponseWriter, r *http.Request) (*request, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(codeBadArguments, "the query string is malformed")
	}
	req := &request{
		database: r.Header.Get("X-ClickHouse-Database"), format: r.Header.Get("X-ClickHouse-Format"),
		params: map[string]string{}, settings: map[string]string{}, readonly: r.Method == http.MethodGet,
	}
	for name := range values {
		value := values.Get(name)
		param, isParam := strings.CutPrefix(name, "param_")
		switch {
		case isParam:
			req.params[param] = value
		case (name == "compress" || name == "decompress") && value != "0" && value != "",
			name == "session_id", strings.HasSuffix(name, "_structure"):
			return nil, refuse(codeNotImplemented, name+" is not offered by this ClickHouse for development")
		case name == "compress", name == "decompress", notSettings[name]:
		case !settingName.MatchString(name):
			return nil, refuse(codeUnknownSetting, "Unknown setting "+name)
		default:
			req.settings[name] = value
		}
	}
	if v := values.Get("database"); v != "" {
		req.database = v
	}
	if v := values.Get("default_format"); v != "" {
		req.format = v
	}
	if req.format == "" {
		req.format = "TabSeparated"
	}
	if v := values.Get("client_protocol_version"); v != "" {
		if req.revision, err = strconv.ParseUint(v, 10, 32); err != nil {
			return nil, refuse(codeBadArguments, "client_protocol_version is no number")
		}
	}
	if err := b.readStatement(req, values.Get("query"), w, r); err != nil {
		return nil, err
	}
	if req.statement.format != "" {
		req.format = req.statement.format
	}
	return req, nil
}

// readStatement takes the query from the parameter and the body, one after the
// other, and reads no further than an insert's data.
func (b *bridge) readStatement(req *request, query string, w http.ResponseWriter, r *http.Request) error {
	body := io.Reader(http.MaxBytesReader(w, r.Body, b.maxBody))
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return &bodyError{err}
		}
		body = io.LimitReader(unpacked, b.maxBody)
	default:
		return refuse(codeNotImplemented, "Content-Encoding "+encoding+" is not offered by this ClickHouse for development")
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		return refuse(codeNotImplemented, "external tables are not offered by this ClickHouse for development")
	}

	if query != "" {
		st, err := parseStatement(query)
		if err != nil {
			return err
		}
		if st.insertFormat != "" {
			req.statement = st
			req.data = io.MultiReader(strings.NewReader(query[st.data:]), body)
			return nil
		}
		query += "\n"
	}
	head, err := io.ReadAll(io.LimitReader(body, maxQuery))
	if err != nil {
		return &bodyError{err}
	}
	text := query + string(head)
	st, err := parseStatement(text)
	if err != nil {
		return err
	}
	if st.insertFormat != "" {
		req.statement = st
		req.data = io.MultiReader(strings.NewReader(text[st.data:]), body)
		return nil
	}
	if len(head) == maxQuery {
		return refuse(codeTooLarge, "the query is longer than "+strconv.Itoa(maxQuery)+" bytes")
	}
	if strings.TrimSpace(st.text) == "" {
		return refuse(codeSyntax, "Empty query")
	}
	req.statement = st
	return nil
}

// streams lists the formats whose pieces can be concatenated. The results of all other
// formats (JSON, Pretty, everything with a header) are first built in memory, within
// max_memory_usage.
func streams(format string) bool {
	switch strings.ToLower(format) {
	case "native", "tabseparated", "tsv", "tabseparatedraw", "tsvraw", "raw", "csv", "jsoneachrow", "ndjson", "jsonlines",
		"jsoncompacteachrow", "jsonstringseachrow", "rowbinary", "lineasstring":
		return true
	}
	return false
}

func contentType(format string) string {
	switch f := strings.ToLower(format); {
	case f == "native", strings.HasPrefix(f, "rowbinary"):
		return "application/octet-stream"
	case strings.HasPrefix(f, "tabseparated"), strings.HasPrefix(f, "tsv"):
		return "text/tab-separated-values; charset=UTF-8"
	case strings.HasPrefix(f, "csv"):
		return "text/csv; charset=UTF-8"
	case f == "jsoneachrow", f == "ndjson", f == "jsonlines":
		return "application/x-ndjson; charset=UTF-8"
	case strings.HasPrefix(f, "json"):
		return "application/json; charset=UTF-8"
	}
	return "text/plain; charset=UTF-8"
}

// answer writes a query's result or error.
type answer struct {
	w        http.ResponseWriter
	version  string
	id       string
	format   string
	revision uint64
	tag      string // set once the result has begun
	sent     int64
}

// send writes a piece of the result. The first piece also sends the status.
func (a *answer) send(piece []byte) error {
	if a.revision > 0 {
		var err error
		if piece, err = transcode(piece, a.revision); err != nil {
			return refuse(codeNotImplemented, err.Error())
		}
	}
	if a.tag == "" {
		a.tag = strings.ToLower(rand.Text()[:16])
		a.w.Header().Set("Content-Type", contentType(a.format))
		a.w.Header().Set("X-ClickHouse-Format", a.format)
		a.w.Header().Set("X-ClickHouse-Exception-Tag", a.tag)
	}
	n, err := a.w.Write(piece)
	a.sent += int64(n)
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// fail answers with an error as ClickHouse words it: by status and header, or,
// when the result has begun, framed at its end.
func (a *answer) fail(err error) {
	code := exceptionCode(err)
	text := err.Error()
	if !strings.HasPrefix(text, "Code: ") {
		text = fmt.Sprintf("Code: %d. DB::Exception: %s.", code, text)
	}
	if !strings.Contains(text, "(version ") {
		text += " (version " + a.version + ")"
	}
	if a.tag != "" {
		var b bytes.Buffer
		fmt.Fprintf(&b, "\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", a.tag, text, len(text)+1, a.tag)
		_, _ = a.w.Write(b.Bytes()) // an error may mean that the client is gone
		return
	}
	a.w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	a.w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	a.w.WriteHeader(status(code))
	_, _ = io.WriteString(a.w, text+"\n") //nolint:gosec // plain text, and web pages are turned away
}

// Codes of ClickHouse's errors that the bridge knows.
const (
	codeBadArguments    = 36
	codeUnknownFunction = 46
	codeUnknownName     = 47
	codeNotImplemented  = 48
	codeUnknownType     = 50
	codeTypeMismatch    = 53
	codeUnknownStorage  = 56
	codeUnknownTable    = 60
	codeSyntax          = 62
	codeUnknownAggr     = 63
	codeUnknownFormat   = 73
	codeUnknownDatabase = 81
	codeUnknownSetting  = 115
	codeIncorrectData   = 117
	codeReadonly        = 164
	codeTooLarge        = 307
	codeCannotRead      = 23
	codeUnknown         = 1002
)

func refuse(code int, text string) error {
	return &exception{fmt.Sprintf("Code: %d. DB::Exception: %s.", code, text)}
}

var codePrefix = regexp.MustCompile(`^(?:Error: )?Code: (\d+)\.`)

// exceptionCode is the error's code in ClickHouse's numbering.
func exceptionCode(err error) int {
	var body *bodyError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return codeTooLarge
	case errors.As(err, &body):
		return codeCannotRead
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 394 // QUERY_WAS_CANCELLED
	}
	if m := codePrefix.FindStringSubmatch(err.Error()); m != nil {
		if code, err := strconv.Atoi(m[1]); err == nil {
			return code
		}
	}
	return codeUnknown
}

// status is the HTTP status that ClickHouse gives an error.
func status(code int) int {
	switch code {
	case codeUnknownTable, codeUnknownDatabase, codeUnknownFunction, codeUnknownName, codeUnknownType, codeUnknownStorage,
		codeUnknownAggr, codeUnknownFormat, codeUnknownSetting:
		return http.StatusNotFound
	case codeSyntax, codeTypeMismatch, codeIncorrectData, codeBadArguments, codeCannotRead, 6, 7, 26, 27, 38, 41, 43, 72:
		return http.StatusBadRequest
	case codeTooLarge:
		return http.StatusRequestEntityTooLarge
	case codeNotImplemented:
		return http.StatusNotImplemented
	case codeReadonly:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}
