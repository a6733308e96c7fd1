package chdb_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/test/httpclient"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quittance/dev/stack/chdb"
	"quittance/test/await"
	"quittance/test/servers"
)

// shared is one engine for the tests of this package.
var (
	sharedDir string
	shared    = sync.OnceValues(func() (*chdb.Server, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return chdb.Start(ctx, chdb.Config{Dir: sharedDir, Log: slog.New(slog.DiscardHandler), MaxBody: 64 << 20})
	})
)

func TestMain(m *testing.M) {
	var err error
	if sharedDir, err = os.MkdirTemp("", "quittance-chdb-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if s, err := shared(); err == nil {
		_ = s.Stop(context.Background())
	}
	_ = os.RemoveAll(sharedDir)
	os.Exit(code)
}

func engine(t *testing.T) *chdb.Server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, dir string) *chdb.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := chdb.Start(ctx, chdb.Config{Dir: dir, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, s *chdb.Server, database string) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP, Addr: []string{s.Addr()}, Auth: clickhouse.Auth{Database: database},
		MaxOpenConns: 16, DialTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// database makes a database for one test.
func database(t *testing.T, s *chdb.Server) (driver.Conn, string) {
	t.Helper()
	name := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := connect(t, s, "default").Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return connect(t, s, name), name
}

func exec(t *testing.T, conn driver.Conn, sql string, args ...any) {
	t.Helper()
	if err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, conn driver.Conn, sql string) uint64 {
	t.Helper()
	var n uint64
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

type response struct {
	status int
	header http.Header
	body   string
}

func do(t *testing.T, s *chdb.Server, method, query string, body io.Reader, header ...string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+"/"+query, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(text)}
}

func get(t *testing.T, s *chdb.Server, sql string, params ...string) response {
	t.Helper()
	v := url.Values{"query": {sql}}
	for i := 0; i < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	return do(t, s, http.MethodGet, "?"+v.Encode(), nil)
}

func TestTypesSurviveTheRoundTrip(t *testing.T) {
	t.Parallel()
	conn, _ := database(t, engine(t))
	exec(t, conn, `CREATE TABLE t (
		n UInt64, s String, o Nullable(String), m Map(String, String), at DateTime64(3, 'UTC'),
		d Date, l LowCardinality(String), f Float64, i Int64, b Bool, u UUID, a Array(Array(Int32)),
		e Enum8('x' = 1, 'y' = 2), dec Decimal(18, 4), ln LowCardinality(Nullable(String)), tu Tuple(Int8, String)
	) ENGINE = MergeTree ORDER BY n`)

	const rows = 5000
	texts := []string{"", "plain", "blank\n\nline; DROP TABLE t", `quo'te "double" back\slash`, "émoji 🧾\x00nul", "\t\r\n"}
	at := time.Date(2026, 2, 28, 23, 59, 59, 123_000_000, time.UTC)
	id := uuid.MustParse("018f0000-0000-7000-8000-00000000000a")
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	row := func(n int) []any {
		text := texts[n%len(texts)]
		var o *string
		if n%2 == 0 {
			o = &text
		}
		return []any{
			uint64(n), text, o,
			map[string]string{"k": text, text + "2": ""},
			at.Add(time.Duration(n) * time.Millisecond),
			at.Truncate(24 * time.Hour), text, 1.5, int64(-n), n%3 == 0, id,
			[][]int32{{1, int32(n)}, {}},
			[]string{"x", "y"}[n%2], "12.3400", o,
			[]any{int8(1), text},
		}
	}
	for n := range rows {
		if err := batch.Append(row(n)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}

	result, err := conn.Query(t.Context(), "SELECT n, s, o, m, at, d, l, f, i, b, u, a, e, toString(dec), ln, tu FROM t ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = result.Close() }()
	n := 0
	for ; result.Next(); n++ {
		var (
			num     uint64
			s, l, e string
			o, ln   *string
			m       map[string]string
			when, d time.Time
			f       float64
			i       int64
			b       bool
			u       uuid.UUID
			a       [][]int32
			dec     string
			tu      []any
		)
		if err := result.Scan(&num, &s, &o, &m, &when, &d, &l, &f, &i, &b, &u, &a, &e, &dec, &ln, &tu); err != nil {
			t.Fatal(err)
		}
		got := []any{num, s, o, m, when.UTC(), d.UTC(), l, f, i, b, u, a, e, "12.3400", ln, tu}
		if dec != "12.34" || !reflect.DeepEqual(got, row(n)) {
			t.Fatalf("row %d:\n got %v\nwant %v", n, got, row(n))
		}
	}
	if err := result.Err(); err != nil || n != rows {
		t.Fatalf("%d rows, %v", n, err)
	}
}

// A blank line in inline data ended the statement and ran the rest as SQL.
func TestInlineDataIsNeverSQL(t *testing.T) {
	t.Parallel()
	s := engine(t)
	conn, db := database(t, s)
	exec(t, conn, "CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a")
	exec(t, conn, "INSERT INTO t VALUES (1, 'x\n\nDROP TABLE t'), (2, ?)", "it's\n\n\"bound\"; 🧾")

	in := func(query, body string) {
		t.Helper()
		v := url.Values{"database": {db}}
		if query != "" {
			v.Set("query", query)
		}
		if r := do(t, s, http.MethodPost, "?"+v.Encode(), strings.NewReader(body)); r.status != http.StatusOK || r.body != "" {
			t.Fatalf("%q %q: %+v", query, body, r)
		}
	}
	in("INSERT INTO t FORMAT JSONEachRow", "{\"a\":3,\"s\":\"p\\n\\nq\"}\n\n\n{\"a\":4,\"s\":\"r\"}")
	in("", "INSERT INTO t FORMAT TSV\n5\tfive\n6\tsix\n")
	in("INSERT INTO t (s, a) VALUES", "('seven', 7)")
	in("INSERT INTO t", "SELECT 8, 'eight'")
	in("", "INSERT INTO t SETTINGS max_threads = 1 VALUES (9, 'nine');")

	r := get(t, s, "SELECT a, s FROM t ORDER BY a", "database", db)
	want := "1\tx\\n\\nDROP TABLE t\n2\tit\\'s\\n\\n\"bound\"; 🧾\n3\tp\\n\\nq\n4\tr\n5\tfive\n6\tsix\n7\tseven\n8\teight\n9\tnine\n"
	if r.body != want {
		t.Errorf("got %q, want %q", r.body, want)
	}
	// Broken data inserts nothing.
	bad := do(t, s, http.MethodPost, "?query=INSERT+INTO+"+db+".t+FORMAT+TSV", strings.NewReader("10\tten\nnonsense\n"))
	if bad.status != http.StatusBadRequest || count(t, conn, "SELECT count() FROM t") != 9 {
		t.Errorf("%+v, %d rows", bad, count(t, conn, "SELECT count() FROM t"))
	}
}

func TestCurl(t *testing.T) {
	t.Parallel()
	s := engine(t)
	conn, db := database(t, s)
	exec(t, conn, "CREATE TABLE payments (id UInt8, ref String) ENGINE = MergeTree ORDER BY id")
	exec(t, conn, "INSERT INTO payments VALUES (1, 'a\tb'), (2, 'c')")

	r := do(t, s, http.MethodGet, "?query=SELECT+*+FROM+"+db+".payments", nil)
	if r.status != http.StatusOK || r.body != "1\ta\\tb\n2\tc\n" || r.header.Get("X-ClickHouse-Format") != "TabSeparated" ||
		r.header.Get("Content-Type") != "text/tab-separated-values; charset=UTF-8" {
		t.Errorf("%+v", r)
	}
	if r := do(t, s, http.MethodPost, "?database="+db, strings.NewReader("SELECT toString(count()) AS n FROM payments FORMAT JSONEachRow")); r.body != "{\"n\":\"2\"}\n" {
		t.Errorf("%+v", r)
	}
	if r := get(t, s, "SELECT {a:UInt8} + 1, {b:String}", "param_a", "41", "param_b", `it\'s`, "default_format", "CSV"); r.body != "42,\"it's\"\n" {
		t.Errorf("%+v", r)
	}
	if r := get(t, s, "SELECT getSetting('max_threads'), currentDatabase()", "max_threads", "3", "database", db); r.body != "3\t"+db+"\n" {
		t.Errorf("%+v", r)
	}
	if r := get(t, s, "SELECT currentDatabase()"); r.body != "default\n" {
		t.Errorf("a request uses the database of another request: %+v", r)
	}
	for _, path := range []string{"ping", ""} {
		if r := do(t, s, http.MethodGet, path, nil); r.status != http.StatusOK || r.body != "Ok.\n" {
			t.Errorf("/%s: %+v", path, r)
		}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte("3\tpacked\n"))
	_ = w.Close()
	if r := do(t, s, http.MethodPost, "?query=INSERT+INTO+"+db+".payments+FORMAT+TSV", &packed, "Content-Encoding", "gzip"); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
	if n := count(t, conn, "SELECT count() FROM payments WHERE ref = 'packed'"); n != 1 {
		t.Errorf("%d packed rows", n)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := engine(t)
	conn, db := database(t, s)
	exec(t, conn, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")

	for _, tc := range []struct {
		name   string
		r      response
		status int
		code   string
	}{
		{"syntax", get(t, s, "SELEC 1"), 400, "62"},
		{"unknown table", get(t, s, "SELECT * FROM nope"), 404, "60"},
		{"unknown database", get(t, s, "SELECT 1", "database", "no`pe"), 404, "81"},
		{"unknown setting", get(t, s, "SELECT 1", "nope", "1"), 404, "115"},
		{"setting that is none", get(t, s, "SELECT 1", "a=1,b", "1"), 404, "115"},
		{"two statements", get(t, s, "SELECT 1; SELECT 2"), 400, "62"},
		{"empty", do(t, s, http.MethodPost, "", nil), 400, "62"},
		{"write by GET", get(t, s, "DROP TABLE "+db+".t"), 403, "164"},
		{"insert by GET", get(t, s, "INSERT INTO "+db+".t VALUES (1)"), 403, "164"},
		{"missing parameter", get(t, s, "SELECT {x:UInt8}"), 500, "456"},
		{"block compression", get(t, s, "SELECT 1", "compress", "1"), 501, "48"},
		{"sessions", get(t, s, "SELECT 1", "session_id", "a"), 501, "48"},
		{"body encoding", do(t, s, http.MethodPost, "", strings.NewReader("x"), "Content-Encoding", "br"), 501, "48"},
		{"long query", do(t, s, http.MethodPost, "", strings.NewReader("SELECT "+strings.Repeat(" ", 1<<20)+"1")), 413, "307"},
		{"memory", get(t, s, "SELECT groupArray(number) FROM numbers(100000000)", "max_memory_usage", "10000000"), 500, "241"},
	} {
		if tc.r.status != tc.status || tc.r.header.Get("X-ClickHouse-Exception-Code") != tc.code ||
			!strings.HasPrefix(tc.r.body, "Code: "+tc.code+". DB::Exception: ") || !strings.Contains(tc.r.body, "(version ") {
			t.Errorf("%s: %+v", tc.name, tc.r)
		}
	}

	if r := do(t, s, http.MethodPost, "", strings.NewReader("SELECT 1"), "Origin", "https://evil.example"); r.status != http.StatusForbidden {
		t.Errorf("a web page's request is answered: %+v", r)
	}
	if r := do(t, s, http.MethodDelete, "", nil); r.status != http.StatusMethodNotAllowed {
		t.Errorf("%+v", r)
	}

	err := conn.Exec(t.Context(), "SELECT * FROM missing")
	var exc *clickhouse.Exception
	if !errors.As(err, &exc) || exc.Code != 60 || exc.CodeName != "UNKNOWN_TABLE" {
		t.Errorf("clickhouse-go sees %#v", err)
	}
	// An error in the middle of a result reaches the client as an error, not as a short result.
	rows, err := conn.Query(t.Context(), "SELECT number, throwIf(number = 900000) FROM numbers(1000000) SETTINGS max_threads = 1")
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
	}
	if !errors.As(err, &exc) || exc.Code != 395 {
		t.Errorf("late error: %v", err)
	}
	if got := count(t, conn, "SELECT count() FROM t"); got != 0 {
		t.Errorf("%d rows", got)
	}
}

func TestHugeResultIsStreamed(t *testing.T) {
	t.Parallel()
	s := engine(t)
	before := residentKiB(t, s.PID())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+s.Addr()+"/?max_memory_usage=500000000&query="+url.QueryEscape("SELECT number, repeat('x', 1000) FROM numbers(600000)"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n < 600_000_000 {
		t.Fatalf("%d bytes, %v, %v", n, err, resp.Header)
	}
	t.Logf("resident memory %d MiB before, %d MiB after %d MB", before>>10, residentKiB(t, s.PID())>>10, n/1_000_000)
}

func TestClientThatGoesAway(t *testing.T) {
	t.Parallel()
	s := engine(t)
	conn, db := database(t, s)
	exec(t, conn, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+"/?query="+url.QueryEscape("SELECT number FROM numbers(100000000000)"), nil)
	if resp, err := httpclient.Default.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	// An incomplete insert inserts nothing.
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(c, "POST /?query=INSERT+INTO+%s.t+FORMAT+TSV HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n1\n2\n3\n", db)
	_ = c.Close()
	time.Sleep(200 * time.Millisecond) // time for a wrong insert: nothing happens that could be awaited
	if n := count(t, conn, "SELECT count() FROM t"); n != 0 {
		t.Errorf("%d rows of an incomplete insert, want none", n)
	}
}

func TestManyAtATime(t *testing.T) {
	t.Parallel()
	conn, _ := database(t, engine(t))
	exec(t, conn, "CREATE TABLE t (a UInt64, w UInt64) ENGINE = MergeTree ORDER BY a")
	var g errgroup.Group
	const writers, batches, rows = 8, 5, 200
	for w := range writers {
		g.Go(func() error {
			for b := range batches {
				batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
				if err != nil {
					return err
				}
				for i := range rows {
					if err := batch.Append(uint64(b*rows+i), uint64(w)); err != nil {
						return err
					}
				}
				if err := batch.Send(); err != nil {
					return err
				}
				var mine uint64
				if err := conn.QueryRow(t.Context(), "SELECT count() FROM t WHERE w = ?", w).Scan(&mine); err != nil {
					return err
				}
				if want := uint64((b + 1) * rows); mine != want {
					return fmt.Errorf("writer %d sees %d of its %d rows", w, mine, want)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, conn, "SELECT count() FROM t"); n != writers*batches*rows {
		t.Errorf("%d rows", n)
	}
}

func TestSameBatchTwiceIsOneUnderFinal(t *testing.T) {
	t.Parallel()
	conn, _ := database(t, engine(t))
	exec(t, conn, "CREATE TABLE t (id String, v UInt64) ENGINE = ReplacingMergeTree ORDER BY id")
	for range 2 {
		batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO t")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			if err := batch.Append(fmt.Sprint("id", i), uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, conn, "SELECT count() FROM t FINAL"); n != 1000 {
		t.Errorf("%d rows under FINAL", n)
	}
	if n := count(t, conn, "SELECT sum(v) FROM t FINAL"); n != 999*1000/2 {
		t.Errorf("sum %d under FINAL", n)
	}
}

// The child is killed after rows were acknowledged. It restarts by itself at the same
// address and has the rows.
func TestKillKeepsTheData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	conn, db := database(t, s)
	exec(t, conn, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
	exec(t, conn, "INSERT INTO t SELECT number FROM numbers(1000)")
	pid := s.PID()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var n uint64
	await.Until(t, "the engine restarts", func() bool {
		return conn.QueryRow(t.Context(), "SELECT count() FROM t").Scan(&n) == nil && s.PID() != pid
	})
	if n != 1000 {
		t.Errorf("%d rows after the crash", n)
	}

	// A second engine on the folder is refused, with the reason.
	_, err := chdb.Start(t.Context(), chdb.Config{Dir: dir, Log: servers.Logger(t)})
	if err == nil || !strings.Contains(err.Error(), "another engine runs on") {
		t.Errorf("second engine: %v", err)
	}

	// After an orderly stop and another start the rows are there as well.
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
		t.Error("the port is still open after Stop")
	}
	again := start(t, dir)
	if n := count(t, connect(t, again, db), "SELECT count() FROM t"); n != 1000 {
		t.Errorf("%d rows after a restart", n)
	}
	t.Logf("resident memory of an idle engine: %d MiB", residentKiB(t, again.PID())>>10)
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := chdb.Start(t.Context(), chdb.Config{Dir: t.TempDir(), Log: servers.Logger(t), Library: "/nowhere/libchdb.so"})
	if !errors.Is(err, chdb.ErrNoLibrary) || !strings.Contains(err.Error(), "make deps") {
		t.Errorf("%v", err)
	}
	notLibrary := t.TempDir() + "/libchdb.so"
	if err := os.WriteFile(notLibrary, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = chdb.Start(t.Context(), chdb.Config{Dir: t.TempDir(), Log: servers.Logger(t), Library: notLibrary}); err == nil || !strings.Contains(err.Error(), "loading libchdb") {
		t.Errorf("%v", err)
	}
}

func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	if _, after, ok := strings.Cut(string(status), "VmRSS:"); ok {
		_, _ = fmt.Sscan(after, &kib)
	}
	return kib
}
