package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/mcp"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/request"
	"github.com/inquest-dev/inquest/internal/tracker"
)

const mcpLong = `mcp offers inquest to a coding agent over the Model Context Protocol: tools that diagnose,
show the timeline and the lines that prove it, explain failures, name the measurement that
decides, show kept incidents, who holds the GPUs, memory snapshots and trackers.

It speaks the protocol on its standard streams and ends when standard input does. With --http it
listens on a loopback address instead, for programs of this machine that have the token: one is
made at each start and printed to standard error, unless --token-file names a file that holds one.

The tools read any path that you may read, because an agent that you start could. They run no
command, change no file of yours, and send nothing anywhere; what they return has its secrets
masked, is bounded, and has text of logs marked as data. Pasted text is kept in a folder of its
own until mcp ends.

An interrupt (Ctrl-C) ends it, as the end of standard input does. Status: 0 it was ended so; 1 it
could not listen, or standard output is gone; 2 wrong usage.`

const mcpExample = `  claude mcp add inquest -- inquest mcp         standard streams, as most clients start it
  inquest mcp --http 127.0.0.1:7420
  inquest mcp --http 127.0.0.1:7420 --token-file ~/.config/inquest/token`

// mcpFlags are the values of the flags of inquest mcp.
type mcpFlags struct {
	storeFlag
	http, tokenFile string
}

func mcpCommand(a *app) *cobra.Command {
	var m mcpFlags
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Offer inquest's tools to agents over the Model Context Protocol",
		Long:    mcpLong,
		Example: mcpExample,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.mcp(cmd.Context(), &m) },
	}
	f := cmd.Flags()
	f.StringVar(&m.http, "http", "", "listen on this loopback address, as 127.0.0.1:7420 or localhost:0, instead of the standard streams")
	f.StringVar(&m.tokenFile, "token-file", "", "with --http: file with the token that clients send, readable by you alone")
	m.flag(cmd)
	return cmd
}

// mcp runs the command.
func (a *app) mcp(ctx context.Context, m *mcpFlags) (err error) {
	if m.tokenFile != "" && m.http == "" {
		return fmt.Errorf("%w: --token-file is for --http; on the standard streams nobody else can speak", errUsage)
	}
	if m.http != "" && !loopbackAddress(m.http) {
		return fmt.Errorf("%w: --http %s; the tools are offered on a loopback address only, as 127.0.0.1:7420", errUsage, m.http)
	}
	token, err := m.token()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // how people and clients end a server
	defer stop()
	a.keepInterrupts()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o, err := a.mcpOptions(ctx, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Desk.Close()) }()
	defer cancel() // calls in progress end before the desk does
	if m.http == "" {
		err := mcp.New(o).Run(ctx, mcp.Streams(a.in, a.out))
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	return a.mcpHTTP(ctx, stop, m.http, token, o)
}

// mcpOptions are what the tools work with; their calls end with ctx.
func (a *app) mcpOptions(ctx context.Context, m *mcpFlags) (mcp.Options, error) {
	eo, err := a.options(nil)
	if err != nil {
		return mcp.Options{}, err
	}
	eo.Stdin = nil // the protocol's
	st, err := m.open()
	if err != nil {
		return mcp.Options{}, err
	}
	d, err := desk.New(desk.Options{Engine: eo, Now: time.Now, Title: report.Title})
	if err != nil {
		return mcp.Options{}, err
	}
	return mcp.Options{
		Desk: d, Catalog: eo.Catalog, Store: st, Version: version(), Done: ctx.Done(),
		GPUs: func(ctx context.Context) (*incident.Holders, error) {
			return gpu.Look(ctx, gpu.Tools, "/", self(), version(), nil)
		},
		Align: func(ctx context.Context, run string, logs []string) (*incident.Alignment, error) {
			o := eo
			o.Paths = append([]string{run}, logs...)
			to := engine.TrackerOptions{Points: textPoints}
			to.Stale, to.Now = tracker.DefaultStale, time.Now()
			return engine.Align(ctx, o, to)
		},
	}, nil
}

// mcpHTTP serves the tools at an address until ctx ends.
func (a *app) mcpHTTP(ctx context.Context, stop func(), address, token string, o mcp.Options) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	defer l.Close()
	if !request.Loopback(l.Addr().String()) { // a name that the system resolves to something else
		return fmt.Errorf("%w: --http %s is %s, which is no loopback address", errUsage, address, l.Addr())
	}
	fmt.Fprintf(a.err, "inquest mcp listens on http://%s%s\n", l.Addr(), mcp.Path)
	fmt.Fprintf(a.err, "clients send the header Authorization: Bearer %s\n", token)
	return answer(ctx, stop, l, mcp.Handler(mcp.New(o), token), log.New(a.err, "inquest: ", 0))
}

// loopbackAddress reports whether an address to listen on names its host, and that is loopback.
func loopbackAddress(address string) bool {
	host, port, err := net.SplitHostPort(address)
	return err == nil && host != "" && port != "" && request.Loopback(host)
}

// shortestToken is in characters.
const shortestToken = 16

// token is the one of the file, or a new one.
func (m *mcpFlags) token() (string, error) {
	if m.tokenFile == "" {
		return rand.Text(), nil
	}
	f, err := os.Open(m.tokenFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return "", err
	} else if runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%w: --token-file %s can be read by others; chmod 600 makes it yours alone", errUsage, m.tokenFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", m.tokenFile, err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < shortestToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%w: --token-file %s: a token is one word of %d characters or more", errUsage, m.tokenFile, shortestToken)
	}
	return token, nil
}
