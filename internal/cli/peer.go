package cli

import (
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// A peerListener accepts connections of this user and of root alone: on a machine with many users,
// all of them reach a loopback address.
type peerListener struct{ net.Listener }

// Accept is the next connection of somebody who may have one. Others get an answer that says why.
func (l peerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || mayConnect(c.RemoteAddr(), c.LocalAddr()) {
			return c, err
		}
		c.SetWriteDeadline(time.Now().Add(time.Second))
		io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nthis inquest is another user's\n")
		c.Close()
	}
}

// mayConnect reports whether the other end of a connection within this machine is ours or root's.
// What the system does not say is not.
func mayConnect(peer, here net.Addr) bool {
	uid, err := ownerOf(addrPort(peer), addrPort(here))
	return err == nil && (uid == os.Geteuid() || uid == 0)
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// ownPeers narrows l to connections of this user, where the system says whose one is: it is asked
// about a connection of our own, which l gets and which ends at once.
func ownPeers(l net.Listener) (net.Listener, bool) {
	c, err := net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
	if err != nil {
		return l, false
	}
	defer c.Close()
	if uid, err := ownerOf(addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())); err != nil || uid != os.Geteuid() {
		return l, false
	}
	return peerListener{l}, true
}
