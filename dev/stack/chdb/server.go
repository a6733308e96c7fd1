package chdb

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Config is the configuration of an engine.
type Config struct {
	// Library is the path of libchdb.so; when empty, FindLibrary finds it.
	Library string
	// Dir is the data folder of one engine; it is created when absent.
	Dir string
	// Addr is the host:port to listen on; 127.0.0.1:0 when empty. It must be on loopback,
	// because there is no password.
	Addr string
	// MaxBody is the largest request body in bytes; 1 GiB when zero.
	MaxBody int64
	// Users is ClickHouse's configuration of users in XML, for tests of rights and row
	// policies. Queries run as its user default. When empty, that user may do everything.
	Users string
	// Log receives the child's log lines. Required.
	Log *slog.Logger
}

// Server is a running engine. Safe for concurrent use.
type Server struct {
	addr   string
	socket *os.File // the listening socket; the child has a copy
	cfg    Config
	config string // of the child
	stop   chan struct{}
	done   chan struct{} // closed when nothing runs any more

	stopOnce sync.Once

	mu      sync.Mutex
	current *process
}

// restartAfter is the pause before a child that died is started again.
const restartAfter = 500 * time.Millisecond

// Start starts the engine in a child process and waits until it answers, or
// until ctx ends. The server then lives until Stop, or as long as this process:
// the kernel ends the child with it. A child that dies otherwise is started again on
// the same folder and address; requests meanwhile wait.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Dir == "" || cfg.Log == nil {
		return nil, errors.New("starting ClickHouse: Dir and Log are required")
	}
	var err error
	if cfg.Library == "" {
		cfg.Library, err = FindLibrary()
	} else {
		err = checkLibrary(cfg.Library)
	}
	if err != nil {
		return nil, fmt.Errorf("starting ClickHouse: %w", err)
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("starting ClickHouse: %w", err)
	}
	child, err := json.Marshal(childConfig{Library: cfg.Library, Dir: cfg.Dir, MaxBody: cmp.Or(cfg.MaxBody, 1<<30), Users: cfg.Users})
	if err != nil {
		return nil, fmt.Errorf("starting ClickHouse: %w", err)
	}
	// The parent owns the socket, so the port is known at once and stays the same, and
	// clients wait in its queue while a child starts.
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cmp.Or(cfg.Addr, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("starting ClickHouse: %w", err)
	}
	addr := listener.Addr().String()
	socket, err := listener.(*net.TCPListener).File()
	_ = listener.Close()
	if err != nil {
		return nil, fmt.Errorf("starting ClickHouse: copying the listening socket: %w", err)
	}
	s := &Server{
		addr: addr, socket: socket, cfg: cfg, config: string(child),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	first, err := s.spawn()
	if err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("starting ClickHouse: %w", err)
	}
	if err := s.awaitReady(ctx, first); err != nil {
		first.kill()
		_ = socket.Close()
		return nil, fmt.Errorf("starting ClickHouse: %w", err)
	}
	go s.supervise(first)
	return s, nil
}

// Addr is where the engine listens, host:port.
func (s *Server) Addr() string { return s.addr }

// PID returns the process id of the engine, which is another after a restart.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.cmd.Process.Pid
}

// Stop waits up to three seconds for running queries, ends the child and frees the port.
// When ctx ends first, it kills the child; inserted data is kept. A second Stop does
// nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stop) })
	select {
	case <-s.done:
	case <-ctx.Done():
		s.mu.Lock()
		s.current.kill()
		s.mu.Unlock()
		<-s.done
	}
	return nil
}

// supervise keeps a child running until Stop.
func (s *Server) supervise(p *process) {
	defer close(s.done)
	defer func() { _ = s.socket.Close() }()
	for {
		select {
		case <-s.stop:
			p.end()
			return
		case <-p.exited:
			s.cfg.Log.Error("ClickHouse died, starting it again", slog.String("how", p.how()))
		}
		for {
			select {
			case <-s.stop:
				return
			case <-time.After(restartAfter):
			}
			next, err := s.spawn()
			if err == nil {
				p = next
				break
			}
			s.cfg.Log.Error("starting ClickHouse again", slog.Any("error", err))
		}
	}
}

func (s *Server) awaitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pinged := make(chan error, 1)
	go func() { pinged <- ping(ctx, s.addr) }()
	select {
	case err := <-pinged:
		return err
	case <-p.exited:
		return fmt.Errorf("the child ended at once: %s", p.how())
	}
}

// ping does not poll: the request waits in the socket's queue until the child accepts it.
func ping(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/ping", nil)
	if err != nil {
		return fmt.Errorf("pinging: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("waiting for it to answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("waiting for it to answer: %s", resp.Status)
	}
	return nil
}

// process is one child.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu   sync.Mutex
	err  error
	tail []string // the last lines of its log
}

const tailLines = 20

func (s *Server) spawn() (*process, error) {
	// /proc/self/exe is this program even if its file was replaced meanwhile.
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends by Stop, in order
	cmd.Args = []string{"quittance-clickhouse"}
	// The child does not inherit the environment, which may contain secrets.
	cmd.Env = []string{envChild + "=" + s.config, "TZ=UTC", "LANG=C.UTF-8"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok { //nolint:forbidigo // passed on, not read
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.ExtraFiles = []*os.File{s.socket}
	// A group of its own: Ctrl-C in a terminal reaches the parent only, which then stops the
	// child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	cmd.Stdout = cmd.Stderr
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	// The kernel sends the death signal when the thread that forked ends, not the process
	// (golang.org/issue/27505). This goroutine keeps its thread until the child has ended.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.log(out, s.cfg.Log)
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the child: %w", err)
	}
	s.mu.Lock()
	s.current = p
	s.mu.Unlock()
	return p, nil
}

// log logs the child's lines until its output ends.
func (p *process) log(out io.Reader, log *slog.Logger) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		log.Debug("clickhouse", slog.String("line", line))
		p.mu.Lock()
		if p.tail = append(p.tail, line); len(p.tail) > tailLines {
			p.tail = p.tail[1:]
		}
		p.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, out) // a line that is too long must not block the child
}

// how describes how the child ended, with the last lines of its log.
func (p *process) how() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := "exit status 0"
	if p.err != nil {
		text = p.err.Error()
	}
	if len(p.tail) > 0 {
		text += ": " + strings.Join(p.tail, "\n")
	}
	return text
}

// end sends SIGTERM, waits for five seconds, then kills the child.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		p.kill()
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.exited
}
