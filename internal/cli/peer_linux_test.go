package cli

import (
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// connection connects to l as the user uid and returns both ends.
func connection(t *testing.T, l net.Listener, uid int) (there, here net.Conn) {
	t.Helper()
	dialed := make(chan net.Conn, 1)
	go func() {
		// The thread is another user's from now on, and is not used again.
		runtime.LockOSThread()
		if uid != os.Geteuid() {
			unix.SetfsuidRetUid(uid)
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	there = <-dialed
	if there == nil {
		t.FailNow()
	}
	t.Cleanup(func() { there.Close(); here.Close() })
	return there, here
}

func TestPeers(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		defer l.Close()
		if _, ok := ownPeers(l); !ok {
			t.Skip("this system does not say whose a connection is")
		}
		first, err := l.Accept() // the one that ownPeers made
		if err != nil {
			t.Fatal(err)
		}
		if mayConnect(first.RemoteAddr(), first.LocalAddr()) {
			t.Errorf("%s: a connection whose other end is closed is somebody's", address)
		}
		first.Close()

		there, here := connection(t, l, os.Geteuid())
		if !mayConnect(here.RemoteAddr(), here.LocalAddr()) {
			t.Errorf("%s: a connection of our own is not ours", address)
		}
		there.Close()
		if mayConnect(here.RemoteAddr(), here.LocalAddr()) {
			t.Errorf("%s: a connection whose other end is closed is somebody's", address)
		}
	}
}

// TestPeerOfAnotherUser connects as another user, which root alone can do.
func TestPeerOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can connect as another user")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there, here := connection(t, l, 54321)
	uid, err := ownerOf(addrPort(here.RemoteAddr()), addrPort(here.LocalAddr()))
	if err != nil {
		t.Skipf("this system does not say whose a connection is: %v", err)
	}
	if uid != 54321 || mayConnect(here.RemoteAddr(), here.LocalAddr()) {
		t.Errorf("the owner is %d, want 54321, and it is let pass", uid)
	}
	there.Close()

	// What is refused gets an answer, and is not the next connection.
	own := peerListener{l}
	answered := make(chan string)
	go func() {
		runtime.LockOSThread()
		unix.SetfsuidRetUid(54321)
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			close(answered)
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		answered <- string(b)
	}()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := own.Accept()
		accepted <- c
	}()
	if says := <-answered; !strings.Contains(says, "another user's") {
		t.Errorf("another user is told %q", says)
	}
	mine, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	c := <-accepted
	if c == nil || c.RemoteAddr().String() != mine.LocalAddr().String() {
		t.Error("the next connection is not our own")
	}
}
