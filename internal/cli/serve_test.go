package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHosts(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 7311}
	for _, c := range []struct {
		listen string
		names  []string
		want   string
	}{
		{"10.0.0.5:7311", nil, "10.0.0.5:7311 10.0.0.5:7311 10.0.0.5"},
		{"gpu-4:0", nil, "10.0.0.5:7311 gpu-4:7311 gpu-4"},
		{"gpu-4:0", []string{"proxy.example", "other:80", "[fe80::1]", "fe80::2"},
			"10.0.0.5:7311 gpu-4:7311 gpu-4 proxy.example:7311 proxy.example other:80 [fe80::1]:7311 [fe80::1] [fe80::2]:7311 [fe80::2]"},
	} {
		if got := strings.Join(hosts(at, c.listen, c.names), " "); got != c.want {
			t.Errorf("--listen %s --allow-host %v: %s, want %s", c.listen, c.names, got, c.want)
		}
	}
}

// TestAnswer holds the server to its bounds, and to an end that waits for nobody.
func TestAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	inside, ended := make(chan bool), make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		if r.URL.Path == "/wait" {
			inside <- true
			<-r.Context().Done()
		}
	})
	go func() { ended <- answer(ctx, cancel, listener, h, log.New(io.Discard, "", 0)) }()

	ask := func(path, header string) (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		// Large headers may be refused before all of them are sent.
		go fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", path, header)
		return conn, bufio.NewReader(conn)
	}
	for length, status := range map[int]int{1000: 200, 64 << 10: 431, 1 << 20: 431} {
		_, answer := ask("/", strings.Repeat("x", length))
		resp, err := http.ReadResponse(answer, nil)
		if err != nil {
			t.Fatalf("headers of %d bytes: %v", length, err)
		}
		if resp.StatusCode != status {
			t.Errorf("headers of %d bytes: status %d, want %d", length, resp.StatusCode, status)
		}
	}
	// Asked of the server as a whole, the handler is the one to answer too.
	general, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer general.Close()
	general.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(general, "OPTIONS * HTTP/1.1\r\nHost: rebound.example\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(general), nil); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("OPTIONS *: %v, %v", resp, err)
	}

	ask("/wait", "")
	<-inside
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a request that is open holds up the end")
	}
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}
