package clickhouse_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"quittance/internal/clickhouse"
	"quittance/test/servers"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	addr, database := servers.ClickHouse(t)
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database+"?max_threads=2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var current, threads string
	if err := conn.QueryRow(t.Context(), "SELECT currentDatabase(), toString(getSetting('max_threads'))").Scan(&current, &threads); err != nil {
		t.Fatal(err)
	}
	if current != database || threads != "2" {
		t.Errorf("database %q, max_threads %q", current, threads)
	}
}

func TestCreateDatabase(t *testing.T) {
	t.Parallel()
	addr, database := servers.ClickHouse(t)
	url := "http://" + addr + "/" + database + "_new-1"
	_, err := clickhouse.Open(t.Context(), url)
	if err == nil || !strings.Contains(err.Error(), "has no database "+database+"_new-1, `quittance migrate` makes it") {
		t.Fatalf("%v", err)
	}
	for range 2 {
		if err := clickhouse.CreateDatabase(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := clickhouse.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Exec(t.Context(), "DROP DATABASE "+clickhouse.Quote(database+"_new-1")); err != nil {
		t.Error(err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	// A port that was free a moment ago.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	_ = ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	for _, tc := range []struct{ url, want string }{
		{"http://" + closed + "/quittance", "ClickHouse at " + closed + " does not answer"},
		{"clickhouse://u:hunter2@" + closed + "/quittance", "ClickHouse at " + closed + " does not answer"},
		{"https://u:hunter2@" + closed + "/quittance", "ClickHouse at " + closed + " does not answer"}, // was refused for want of secure=true
		{"postgres://u:hunter2@h/x", "not postgres://"},
		{"127.0.0.1:9000", "a ClickHouse address is"},
		{"http:///quittance", "the host is missing"},
		{"http://u:hunter2@h:1/d?dial_timeout=soon", "ClickHouse at h:1"},
		{"http://u:hunter2@h:1/d\x7f", "a ClickHouse address is"},
	} {
		_, err := clickhouse.Open(ctx, tc.url)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", tc.url, err)
		}
	}
	if _, err := clickhouse.Open(ctx, "ftp://h/x"); !errors.Is(err, clickhouse.ErrAddress) {
		t.Errorf("%v", err)
	}
}
