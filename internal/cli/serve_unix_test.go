//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A serving process is inquest serve, started and listening.
type servingProcess struct {
	*testing.T
	cmd     *exec.Cmd
	errs    bytes.Buffer
	address string // that it printed
	scratch string
}

func startServe(t *testing.T, args ...string) *servingProcess {
	t.Helper()
	s := &servingProcess{T: t, scratch: t.TempDir()}
	s.cmd = exec.Command("inquest", append([]string{"serve", "--store", t.TempDir(), "--scratch", s.scratch}, args...)...)
	s.cmd.Stderr = &s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "Listening on http://")
	if err != nil || !ok {
		s.cmd.Wait()
		t.Fatalf("printed %q, %v; %s", line, err, s.errs.String())
	}
	s.address = "http://" + address
	return s
}

// get asks for a page as a browser does, with its cookies.
func (s *servingProcess) get(c *http.Client, address string) (int, string) {
	s.Helper()
	defer c.CloseIdleConnections()
	resp, err := c.Get(address)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// end sends a signal, and holds the process to its end.
func (s *servingProcess) end(sig syscall.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.Errorf("after signal %v: %v; %s", sig, err, s.errs.String())
	}
	if left, err := os.ReadDir(s.scratch); err != nil || len(left) > 0 {
		s.Errorf("left behind: %v, %v", left, err)
	}
}

func TestServe(t *testing.T) {
	s := startServe(t, "--listen", "127.0.0.1:0")
	if strings.Contains(s.address, "token") {
		t.Errorf("on a loopback address it printed %s", s.address)
	}
	if status, page := s.get(http.DefaultClient, s.address); status != 200 || !strings.Contains(page, "Eight ranks, one broken GPU") {
		t.Errorf("status %d: %s", status, page)
	}
	if status, document := s.get(http.DefaultClient, s.address+"openapi.json"); status != 200 || !strings.Contains(document, `"openapi"`) {
		t.Errorf("the document of the API: status %d", status)
	}
	resp, err := http.Post(s.address+"samples/oom-then-nan", "", nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("a sample: %v, %v", resp, err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()

	// Its port is taken now.
	at, _ := url.Parse(s.address)
	var errs bytes.Buffer
	second := exec.Command("inquest", "serve", "--listen", at.Host, "--store", t.TempDir())
	second.Stderr = &errs
	if err := second.Run(); second.ProcessState == nil || second.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "another program listens there") || !strings.Contains(errs.String(), "--listen 127.0.0.1:0") {
		t.Errorf("on a port that is taken: %v, %s", err, errs.String())
	}
	s.end(syscall.SIGINT)
	startServe(t, "--listen", at.Host).end(syscall.SIGTERM)
}

func TestServeToken(t *testing.T) {
	listen := map[string][]string{"on loopback": {"--token", "--listen", "localhost:0"}}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			listen["elsewhere"] = []string{"--listen", ip.IP.String() + ":0"}
		}
	}
	if len(listen) == 1 {
		t.Log("this machine has no other address than loopback; only that is tried")
	}
	tokens := map[string]bool{}
	for where, args := range listen {
		t.Run(where, func(t *testing.T) {
			s := startServe(t, args...)
			at, err := url.Parse(s.address)
			if err != nil || at.Path != "/enter" || len(at.Query().Get("token")) < 26 {
				t.Fatalf("printed %s", s.address)
			}
			if tokens[at.Query().Get("token")] {
				t.Error("the token is the same at each start")
			}
			tokens[at.Query().Get("token")] = true
			root := "http://" + at.Host + "/"
			if status, page := s.get(http.DefaultClient, root); status != 401 {
				t.Errorf("without the token: status %d: %s", status, page)
			}
			if status, _ := s.get(http.DefaultClient, root+"enter?token=wrong"); status != 401 {
				t.Errorf("with a wrong token: status %d", status)
			}
			jar, _ := cookiejar.New(nil)
			browser := &http.Client{Jar: jar}
			if status, page := s.get(browser, s.address); status != 200 || !strings.Contains(page, "Paste a log") || strings.Contains(page, at.Query().Get("token")) {
				t.Errorf("with the address that was printed: status %d: %s", status, page)
			}
			if status, _ := s.get(browser, root+"cases"); status != 200 {
				t.Errorf("the next page: status %d", status)
			}
			s.end(syscall.SIGINT)
			if where == "elsewhere" != strings.Contains(s.errs.String(), "not encrypted") {
				t.Errorf("said: %s", s.errs.String())
			}
		})
	}
}
