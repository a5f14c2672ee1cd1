package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/api"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/web"
)

// servePort is where serve listens if nothing else is said.
const servePort = "7311"

const serveLong = `serve shows inquest as a page in a browser, with an HTTP API behind it: hand over
logs, folders, archives, snapshots and trackers, and read the verdict with its
timeline, plots and evidence; the encyclopedia; the incidents of the store.

It listens on this machine only, at http://127.0.0.1:` + servePort + `/. Other users of the machine are
kept out by the owner of their connection where the system names it (Linux), else by
a token: add --token. From another machine, forward the port and open the same
address there:

  ssh -L ` + servePort + `:127.0.0.1:` + servePort + ` HOST

--listen HOST:PORT listens elsewhere, and always asks for a token: the address that
is printed at the start holds it. HOST is one address or name of this machine; there
is no listening on all of them. What is sent is not encrypted.

What is handed over is kept in a folder of its own, which goes when serve ends.

An interrupt (Ctrl-C) ends it: what is being handed over is cut off, and what was
handed over is removed. Status: 0 it was ended so; 1 it could not listen; 2 wrong
usage.`

type serving struct {
	listen, scratch string
	token           bool
	names           []string // --allow-host
	workers         int
	store           storeFlag
}

func serveCommand(a *app) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show inquest as a page in the browser, with an HTTP API",
		Long:  serveLong,
		Example: `  inquest serve
  inquest serve --token
  inquest serve --listen 127.0.0.1:0
  inquest serve --listen 10.0.0.5:` + servePort,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), s) },
	}
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:"+servePort, "address and port to listen on; port 0 takes one that is free")
	f.BoolVar(&s.token, "token", false, "ask for a token on a loopback address too")
	f.StringArrayVar(&s.names, "allow-host", nil, "another name under which it is reached, with a port if that differs; may be given more than once")
	f.StringVar(&s.scratch, "scratch", "", "folder to keep what is handed over in while it runs (default: the system's temporary folder)")
	f.IntVar(&s.workers, "cases", 2, "cases that are read at once, 1 to 16")
	s.store.flag(cmd)
	return cmd
}

// serve answers until it is interrupted.
func (a *app) serve(ctx context.Context, s serving) error {
	if s.workers < 1 || s.workers > 16 {
		return fmt.Errorf("%w: --cases %d; 1 to 16", errUsage, s.workers)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	a.keepInterrupts()
	listener, err := listenOn(ctx, s.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	options, err := a.options(nil)
	if err != nil {
		return err
	}
	options.Stdin = nil
	kept, err := s.store.open()
	if err != nil {
		return err
	}
	d, err := desk.New(desk.Options{Dir: s.scratch, Engine: options, Workers: s.workers, Now: time.Now, Title: report.Title})
	if err != nil {
		return err
	}
	defer d.Close()
	pages := web.Options{Desk: d, Catalog: options.Catalog, Store: kept, Samples: samples(), Version: version(), Hosts: hosts(listener.Addr(), s.listen, s.names), Now: time.Now}
	if pages.API, err = api.Handler(api.Options{Desk: d, Catalog: options.Catalog, Store: kept, Version: version()}); err != nil {
		return err
	}
	away := !loopback(listener.Addr())
	if away || s.token {
		pages.Token = rand.Text()
	}
	handler, err := web.Handler(pages)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.out, "Listening on %s\n", s.address(listener.Addr(), pages.Token)); err != nil {
		return fmt.Errorf("say where it listens: %w", err)
	}
	switch {
	case away:
		fmt.Fprintln(a.err, "inquest: other machines may reach this address, with the token alone, and what is sent is not encrypted; ssh -L to a loopback address is")
	case !s.token:
		own := false
		if listener, own = ownPeers(listener); !own {
			fmt.Fprintln(a.err, "inquest: other users of this machine can open this address too; --token keeps them out")
		}
	}
	if err := answer(ctx, stop, listener, handler, log.New(a.err, "inquest: ", 0)); err != nil {
		return err
	}
	fmt.Fprintln(a.err, "inquest: ended; what was handed over is removed")
	return d.Close()
}

// answer answers requests until ctx ends; then what is still open is cut off within a moment.
func answer(ctx context.Context, stop func(), listener net.Listener, h http.Handler, errs *log.Logger) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          errs,
		// OPTIONS * is asked of h too, which knows whom it answers.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("answer requests: %w", err)
	case <-ctx.Done():
	}
	stop() // a second interrupt ends the process at once
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if server.Shutdown(closing) != nil {
		server.Close()
	}
	<-failed
	return nil
}

// listenOn listens on an address that names its host.
func listenOn(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: --listen %s; it takes HOST:PORT, as 127.0.0.1:%s", errUsage, address, servePort)
	}
	everywhere := fmt.Errorf("%w: --listen %s would listen on every address of this machine; name one of them, as 127.0.0.1:%s", errUsage, address, port)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil, everywhere
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("%w: --listen %s; a port is a number up to 65535, 0 for one that is free", errUsage, address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: another program listens there, perhaps another inquest serve; end it, or take another port: --listen %s", address, net.JoinHostPort(host, "0"))
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: that port is not for every user; take one above 1023", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listen on %s: that is not an address of this machine", address)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	// A name may stand for every address, as 0 does on some systems.
	if t, ok := l.Addr().(*net.TCPAddr); !ok || t.IP.IsUnspecified() {
		l.Close()
		return nil, everywhere
	}
	return l, nil
}

func loopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// hosts are the names under which it is reached: the address, what --listen names, and others that
// were allowed, which have its port where they name none, or a proxy's that needs none.
func hosts(at net.Addr, listen string, names []string) []string {
	_, port, _ := net.SplitHostPort(at.String())
	out := []string{at.String()}
	if host, _, err := net.SplitHostPort(listen); err == nil {
		names = append([]string{host}, names...)
	}
	for _, n := range names {
		n = strings.TrimSpace(n)
		if _, _, err := net.SplitHostPort(n); err == nil {
			out = append(out, n)
			continue
		}
		bare := strings.TrimSuffix(strings.TrimPrefix(n, "["), "]")
		withPort := net.JoinHostPort(bare, port)
		out = append(out, withPort, strings.TrimSuffix(withPort, ":"+port))
	}
	return out
}

// address is what to open in a browser.
func (s *serving) address(at net.Addr, token string) string {
	host, _, _ := net.SplitHostPort(s.listen)
	_, port, _ := net.SplitHostPort(at.String())
	u := "http://" + net.JoinHostPort(host, port) + "/"
	if token != "" {
		u += "enter?token=" + token
	}
	return u
}
