package stack_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/stack"
)

// A broker runs on one folder: transactions and groups work. After a SIGKILL and a restart,
// and after an orderly stop and a new start, all acknowledged records are there.
func TestKafkaSurvivesKillAndRestart(t *testing.T) {
	t.Parallel()
	cfg := stack.KafkaConfig{Dir: t.TempDir(), Port: freePort(t), ControllerPort: freePort(t), Log: logger(t)}
	begun := time.Now()
	k, err := stack.StartKafka(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, k.Stop)
	t.Logf("first start: %v", time.Since(begun))

	client := newClient(t, k.Addr())
	createTopic(t, client, "events")
	abortThenCommit(t, k.Addr(), "events", "tx")
	groupCommit(t, k.Addr(), "events", "group", 2)
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "missing"}).FirstErr(); err == nil {
		t.Error("a write created a topic")
	}

	pid := k.Pid()
	if err := k.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("process %d after Kill: %v, want none", pid, err)
	}
	begun = time.Now()
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("restart after a kill: %v", time.Since(begun))
	want := []string{"tx committed 0", "tx committed 1"}
	if got := readAll(t, k.Addr(), "events", 2); !slices.Equal(got, want) {
		t.Errorf("after a kill: %q, want %q", got, want)
	}

	begun = time.Now()
	if err := k.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stop: %v", time.Since(begun))
	again, err := stack.StartKafka(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, again.Stop)
	if got := readAll(t, again.Addr(), "events", 2); !slices.Equal(got, want) {
		t.Errorf("after a stop: %q, want %q", got, want)
	}
}

func TestKafkaSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	_, err := stack.StartKafka(t.Context(), stack.KafkaConfig{Dir: empty, Port: freePort(t), Libs: empty, Log: logger(t)})
	if err == nil || !strings.Contains(err.Error(), "make deps/test") {
		t.Errorf("without jars: %v, want the command that fetches them", err)
	}
}

// The error of a broker that cannot start has the reason from its log. Here its folder
// belongs to a node of another cluster.
func TestKafkaThatEndsAtOnceSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "data", "meta.properties"), "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=7\n")
	_, err := stack.StartKafka(t.Context(), stack.KafkaConfig{Dir: dir, Port: freePort(t), ControllerPort: freePort(t), Log: logger(t)})
	if err == nil || !strings.Contains(err.Error(), "Stored node id 7") {
		t.Errorf("got %v, want the broker's own message about the node id", err)
	}
}
