package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/linkedin/goavro/v2"
)

// SchemaRegistryConfig is the configuration of a schema registry.
type SchemaRegistryConfig struct {
	// Dir holds schemas.json; it is created when absent.
	Dir string
	// Port on 127.0.0.1; zero for any free one.
	Port int
	// Log receives faults of the registry. Required.
	Log *slog.Logger
}

// SchemaRegistry is an in-process schema registry. It implements the part of Confluent's
// protocol that its clients use: subjects, versions, ids, compatibility. It accepts Avro
// schemas without references, refuses a version that breaks the subject's compatibility
// (BACKWARD unless configured), and deletes nothing: an id belongs to its schema for
// ever, also after restarts. It is safe for concurrent use.
type SchemaRegistry struct {
	addr   string
	path   string
	log    *slog.Logger
	server *http.Server
	served chan struct{} // closed when the server has ended
	fault  error         // why the server ended; read it only after served is closed

	mu    sync.Mutex
	state registryState // never changed in place: a new state is saved, then assigned
}

// registryState is the content of schemas.json.
type registryState struct {
	// Schemas by id, minus one.
	Schemas []string `json:"schemas"`
	// Subjects lists the ids of each subject's versions, from version 1.
	Subjects map[string][]int `json:"subjects"`
	// Compatibility levels by subject; "" is the global one.
	Compatibility map[string]string `json:"compatibility"`
}

var compatibilityLevels = []string{
	"NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
}

// StartSchemaRegistry loads the schemas in Dir and listens.
func StartSchemaRegistry(ctx context.Context, cfg SchemaRegistryConfig) (*SchemaRegistry, error) {
	if cfg.Dir == "" || cfg.Log == nil {
		return nil, errors.New("starting the schema registry: Dir and Log are required")
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil { //nolint:gosec // holds no secret
		return nil, fmt.Errorf("starting the schema registry: %w", err)
	}
	r := &SchemaRegistry{
		path: filepath.Join(cfg.Dir, "schemas.json"), log: cfg.Log, served: make(chan struct{}),
		state: registryState{Subjects: map[string][]int{}, Compatibility: map[string]string{"": "BACKWARD"}},
	}
	stored, err := os.ReadFile(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("starting the schema registry: %w", err)
	default:
		if err := json.Unmarshal(stored, &r.state); err != nil {
			return nil, fmt.Errorf("starting the schema registry: reading %s: %w", r.path, err)
		}
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port)))
	if err != nil {
		return nil, fmt.Errorf("starting the schema registry: %w", err)
	}
	r.addr = ln.Addr().String()
	r.server = &http.Server{
		Handler: r.routes(), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(r.served)
		if err := r.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			r.fault = err
		}
	}()
	return r, nil
}

// Addr is the registry's host:port.
func (r *SchemaRegistry) Addr() string { return r.addr }

// URL returns the registry's address for clients.
func (r *SchemaRegistry) URL() string { return "http://" + r.addr }

// Stop finishes the requests under way and frees the port. A second Stop does nothing.
func (r *SchemaRegistry) Stop(ctx context.Context) error {
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, r.server.Close())
	}
	<-r.served
	if err = errors.Join(err, r.fault); err != nil {
		return fmt.Errorf("stopping the schema registry: %w", err)
	}
	return nil
}

// registryError is one of Confluent's error codes. Its first three digits are the HTTP
// status.
type registryError struct {
	Code    int    `json:"error_code"`
	Message string `json:"message"`
}

func (e *registryError) Error() string { return e.Message }

func (e *registryError) status() int {
	status := e.Code
	for status >= 1000 {
		status /= 10
	}
	return status
}

var (
	errSubjectNotFound = &registryError{40401, "Subject not found."}
	errVersionNotFound = &registryError{40402, "Version not found."}
	errSchemaNotFound  = &registryError{40403, "Schema not found"}
	errNoLevel         = &registryError{40408, "Subject does not have subject-level compatibility configured"}
	errBadVersion      = &registryError{42202, "The specified version is not a valid version id. Allowed values are between [1, 2^31-1] and the string \"latest\""}
	errBadLevel        = &registryError{42203, "Invalid compatibility level. Valid values are " + strings.Join(compatibilityLevels, ", ")}
)

// schemaBody is a schema in the protocol's form.
type schemaBody struct {
	Subject    string            `json:"subject,omitempty"`
	Version    int               `json:"version,omitempty"`
	ID         int               `json:"id,omitempty"`
	SchemaType string            `json:"schemaType,omitempty"`
	Schema     string            `json:"schema"`
	References []json.RawMessage `json:"references,omitempty"`
}

func (r *SchemaRegistry) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			req.Body = http.MaxBytesReader(w, req.Body, 4<<20)
			answer, err := h(req)
			r.answer(w, req, answer, err)
		})
	}
	handle("GET /{$}", func(*http.Request) (any, error) { return struct{}{}, nil })
	handle("GET /schemas/types", func(*http.Request) (any, error) { return []string{"AVRO"}, nil })
	handle("GET /schemas/ids/{id}", r.schemaByID)
	handle("GET /schemas/ids/{id}/schema", r.textByID)
	handle("GET /schemas/ids/{id}/subjects", r.subjectsByID)
	handle("GET /schemas/ids/{id}/versions", r.versionsByID)
	handle("GET /subjects", r.subjects)
	handle("POST /subjects/{subject}", r.lookup)
	handle("GET /subjects/{subject}/versions", r.versions)
	handle("POST /subjects/{subject}/versions", r.register)
	handle("GET /subjects/{subject}/versions/{version}", r.version)
	handle("GET /subjects/{subject}/versions/{version}/schema", r.versionText)
	handle("POST /compatibility/subjects/{subject}/versions", r.checkAll)
	handle("POST /compatibility/subjects/{subject}/versions/{version}", r.checkOne)
	for _, path := range []string{"/config", "/config/{subject}"} {
		handle("GET "+path, r.level)
		handle("PUT "+path, r.setLevel)
		handle("DELETE "+path, r.resetLevel)
	}
	readWrite := func(*http.Request) (any, error) { return map[string]string{"mode": "READWRITE"}, nil }
	handle("GET /mode", readWrite)
	handle("GET /mode/{subject}", readWrite)
	return mux
}

// text is an answer without JSON around it: the schema's text.
type text string

func (r *SchemaRegistry) answer(w http.ResponseWriter, req *http.Request, answer any, err error) {
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	status := http.StatusOK
	if err != nil {
		var known *registryError
		if !errors.As(err, &known) {
			r.log.LogAttrs(req.Context(), slog.LevelError, "schema registry", slog.String("path", req.URL.Path), slog.Any("error", err))
			known = &registryError{50001, "Error in the backend data store"}
		}
		answer, status = known, known.status()
	}
	var body []byte
	if t, ok := answer.(text); ok {
		body = []byte(t)
	} else if body, err = json.Marshal(answer); err != nil {
		r.log.LogAttrs(req.Context(), slog.LevelError, "schema registry", slog.Any("error", err))
		status, body = http.StatusInternalServerError, []byte(`{"error_code":500,"message":"Internal error"}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// current returns a snapshot, which never changes.
func (r *SchemaRegistry) current() registryState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// update applies change to a copy of the state, saves the copy and makes it current, so
// that an answer never shows a state that is not on disk.
func (r *SchemaRegistry) update(change func(*registryState) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := registryState{
		Schemas: slices.Clone(r.state.Schemas), Compatibility: maps.Clone(r.state.Compatibility),
		Subjects: make(map[string][]int, len(r.state.Subjects)),
	}
	for subject, ids := range r.state.Subjects {
		next.Subjects[subject] = slices.Clone(ids)
	}
	if err := change(&next); err != nil {
		return err
	}
	if err := writeFileAtomically(r.path, next); err != nil {
		return fmt.Errorf("saving the schemas: %w", err)
	}
	r.state = next
	return nil
}

func writeFileAtomically(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // no longer there after the rename
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// id returns the id of a schema, or 0 for a schema that was never registered.
func (s *registryState) id(schema string) int { return slices.Index(s.Schemas, schema) + 1 }

func (s *registryState) entry(subject string, version int) schemaBody {
	id := s.Subjects[subject][version-1]
	return schemaBody{Subject: subject, Version: version, ID: id, Schema: s.Schemas[id-1]}
}

func (s *registryState) level(subject string) string {
	if level, ok := s.Compatibility[subject]; ok {
		return level
	}
	return s.Compatibility[""]
}

// incompatible returns why a schema may not follow the given ids under a level.
func (s *registryState) incompatible(level, schema string, ids []int) []string {
	kind, transitive := strings.CutSuffix(level, "_TRANSITIVE")
	if !transitive && len(ids) > 1 {
		ids = ids[len(ids)-1:]
	}
	var faults []string
	for _, id := range ids {
		before := s.Schemas[id-1]
		if kind == "BACKWARD" || kind == "FULL" {
			if err := canRead(schema, before); err != nil {
				faults = append(faults, fmt.Sprintf("reading what schema %d wrote: %v", id, err))
			}
		}
		if kind == "FORWARD" || kind == "FULL" {
			if err := canRead(before, schema); err != nil {
				faults = append(faults, fmt.Sprintf("read with schema %d: %v", id, err))
			}
		}
	}
	return faults
}

// readSchema returns the schema of a request without insignificant white space, so that
// texts that differ only in white space are the same schema.
func readSchema(req *http.Request) (schemaBody, error) {
	var body schemaBody
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return body, &registryError{42201, "Invalid request: " + err.Error()}
	}
	if body.SchemaType != "" && body.SchemaType != "AVRO" {
		return body, &registryError{42201, "Invalid schema: only AVRO is supported"}
	}
	if len(body.References) > 0 {
		return body, &registryError{42201, "Invalid schema: references are not supported"}
	}
	if _, err := goavro.NewCodec(body.Schema); err != nil {
		return body, &registryError{42201, "Invalid schema: " + err.Error()}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(body.Schema)); err != nil {
		return body, &registryError{42201, "Invalid schema: " + err.Error()}
	}
	body.Schema = compact.String()
	return body, nil
}

func (s *registryState) byID(req *http.Request) (int, error) {
	id, err := strconv.Atoi(req.PathValue("id"))
	if err != nil || id < 1 || id > len(s.Schemas) {
		return 0, errSchemaNotFound
	}
	return id, nil
}

func (s *registryState) byVersion(req *http.Request) (schemaBody, error) {
	subject := req.PathValue("subject")
	ids, ok := s.Subjects[subject]
	if !ok {
		return schemaBody{}, errSubjectNotFound
	}
	version := len(ids)
	if v := req.PathValue("version"); v != "latest" && v != "-1" {
		var err error
		if version, err = strconv.Atoi(v); err != nil || version < 1 {
			return schemaBody{}, errBadVersion
		}
	}
	if version > len(ids) {
		return schemaBody{}, errVersionNotFound
	}
	return s.entry(subject, version), nil
}

func (r *SchemaRegistry) schemaByID(req *http.Request) (any, error) {
	s := r.current()
	id, err := s.byID(req)
	if err != nil {
		return nil, err
	}
	return schemaBody{Schema: s.Schemas[id-1]}, nil
}

func (r *SchemaRegistry) textByID(req *http.Request) (any, error) {
	s := r.current()
	id, err := s.byID(req)
	if err != nil {
		return nil, err
	}
	return text(s.Schemas[id-1]), nil
}

// subjectVersion is one use of a schema.
type subjectVersion struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

func (s *registryState) uses(id int) []subjectVersion {
	uses := []subjectVersion{}
	for _, subject := range slices.Sorted(maps.Keys(s.Subjects)) {
		if i := slices.Index(s.Subjects[subject], id); i >= 0 {
			uses = append(uses, subjectVersion{subject, i + 1})
		}
	}
	return uses
}

func (r *SchemaRegistry) versionsByID(req *http.Request) (any, error) {
	s := r.current()
	id, err := s.byID(req)
	if err != nil {
		return nil, err
	}
	return s.uses(id), nil
}

func (r *SchemaRegistry) subjectsByID(req *http.Request) (any, error) {
	s := r.current()
	id, err := s.byID(req)
	if err != nil {
		return nil, err
	}
	subjects := []string{}
	for _, use := range s.uses(id) {
		subjects = append(subjects, use.Subject)
	}
	return subjects, nil
}

func (r *SchemaRegistry) subjects(*http.Request) (any, error) {
	return slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(r.current().Subjects)))), nil
}

func (r *SchemaRegistry) versions(req *http.Request) (any, error) {
	ids, ok := r.current().Subjects[req.PathValue("subject")]
	if !ok {
		return nil, errSubjectNotFound
	}
	versions := make([]int, len(ids))
	for i := range versions {
		versions[i] = i + 1
	}
	return versions, nil
}

func (r *SchemaRegistry) version(req *http.Request) (any, error) {
	s := r.current()
	return s.byVersion(req)
}

func (r *SchemaRegistry) versionText(req *http.Request) (any, error) {
	s := r.current()
	entry, err := s.byVersion(req)
	return text(entry.Schema), err
}

func (r *SchemaRegistry) lookup(req *http.Request) (any, error) {
	body, err := readSchema(req)
	if err != nil {
		return nil, err
	}
	s := r.current()
	subject := req.PathValue("subject")
	ids, ok := s.Subjects[subject]
	if !ok {
		return nil, errSubjectNotFound
	}
	if i := slices.Index(ids, s.id(body.Schema)); i >= 0 {
		return s.entry(subject, i+1), nil
	}
	return nil, errSchemaNotFound
}

// register adds a version unless the subject already has the schema. A schema has the same
// id in every subject.
func (r *SchemaRegistry) register(req *http.Request) (any, error) {
	body, err := readSchema(req)
	if err != nil {
		return nil, err
	}
	subject := req.PathValue("subject")
	if s := r.current(); slices.Contains(s.Subjects[subject], s.id(body.Schema)) {
		return map[string]int{"id": s.id(body.Schema)}, nil
	}
	var id int
	err = r.update(func(s *registryState) error {
		id = s.id(body.Schema)
		ids := s.Subjects[subject]
		if id > 0 && slices.Contains(ids, id) {
			return nil
		}
		if faults := s.incompatible(s.level(subject), body.Schema, ids); len(faults) > 0 {
			return &registryError{409, "Schema being registered is incompatible with an earlier schema for subject \"" + subject + "\": " + strings.Join(faults, "; ")}
		}
		if id == 0 {
			s.Schemas = append(s.Schemas, body.Schema)
			id = len(s.Schemas)
		}
		if body.ID > 0 && body.ID != id {
			return &registryError{42205, "Subject " + subject + " is not in import mode"}
		}
		s.Subjects[subject] = append(ids, id)
		return nil
	})
	return map[string]int{"id": id}, err
}

// compatibility answers whether a schema may follow the subject's versions.
type compatibility struct {
	Compatible bool     `json:"is_compatible"`
	Messages   []string `json:"messages,omitempty"`
}

func (r *SchemaRegistry) checkAll(req *http.Request) (any, error) {
	body, err := readSchema(req)
	if err != nil {
		return nil, err
	}
	s := r.current()
	subject := req.PathValue("subject")
	faults := s.incompatible(s.level(subject), body.Schema, s.Subjects[subject])
	return compatibility{len(faults) == 0, faults}, nil
}

func (r *SchemaRegistry) checkOne(req *http.Request) (any, error) {
	body, err := readSchema(req)
	if err != nil {
		return nil, err
	}
	s := r.current()
	entry, err := s.byVersion(req)
	if err != nil {
		return nil, err
	}
	faults := s.incompatible(s.level(entry.Subject), body.Schema, []int{entry.ID})
	return compatibility{len(faults) == 0, faults}, nil
}

func (r *SchemaRegistry) level(req *http.Request) (any, error) {
	s := r.current()
	subject := req.PathValue("subject")
	if _, ok := s.Compatibility[subject]; !ok && req.URL.Query().Get("defaultToGlobal") != "true" {
		return nil, errNoLevel
	}
	return map[string]string{"compatibilityLevel": s.level(subject)}, nil
}

func (r *SchemaRegistry) setLevel(req *http.Request) (any, error) {
	var body struct {
		Compatibility string `json:"compatibility"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || !slices.Contains(compatibilityLevels, body.Compatibility) {
		return nil, errBadLevel
	}
	err := r.update(func(s *registryState) error {
		s.Compatibility[req.PathValue("subject")] = body.Compatibility
		return nil
	})
	return body, err
}

func (r *SchemaRegistry) resetLevel(req *http.Request) (any, error) {
	subject := req.PathValue("subject")
	var level string
	err := r.update(func(s *registryState) error {
		level = s.level(subject)
		if delete(s.Compatibility, subject); subject == "" {
			s.Compatibility[""] = "BACKWARD"
		}
		return nil
	})
	return map[string]string{"compatibility": level}, err
}
