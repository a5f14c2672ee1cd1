package cli

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// ownerOf is the user whose socket is connected from local to remote within this machine. It asks
// the kernel for that one socket (sock_diag(7), linux/inet_diag.h; numbers in the machine's byte
// order but where they are of the network):
//
//	request   nlmsghdr  16  length u32, type u16, flags u16, sequence u32, port u32
//	          family     1  protocol 1, extensions 1, padding 1, states u32
//	          socket    48  ports 2×be16, addresses 2×16 bytes, interface u32, cookie 2×u32
//	answer    nlmsghdr  16
//	          family     1  state 1, timer 1, retransmissions 1
//	          socket    48
//	          ...       12  expiry, queues
//	          uid       u32, inode u32
//
// A socket that is no longer connected has lost its owner, and is an error.
func ownerOf(local, remote netip.AddrPort) (uid int, err error) {
	const header, request, answer, established = 16, 56, 72, 1
	if !local.IsValid() || !remote.IsValid() || local.Addr().Is4() != remote.Addr().Is4() {
		return 0, errors.New("ask for the owner of a connection: no address of TCP")
	}
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, fmt.Errorf("ask for the owner of a connection: %w", err)
	}
	defer unix.Close(s)
	if err := unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return 0, fmt.Errorf("ask for the owner of a connection: %w", err)
	}
	n := binary.NativeEndian
	b := make([]byte, header+request)
	n.PutUint32(b[0:], uint32(len(b)))
	n.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	n.PutUint16(b[6:], unix.NLM_F_REQUEST)
	q := b[header:]
	q[0] = unix.AF_INET6
	if local.Addr().Is4() {
		q[0] = unix.AF_INET
	}
	q[1] = unix.IPPROTO_TCP
	n.PutUint32(q[4:], 1<<established)
	id := q[8:]
	binary.BigEndian.PutUint16(id[0:], local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:20], local.Addr().AsSlice())
	copy(id[20:36], remote.Addr().AsSlice())
	n.PutUint64(id[40:], ^uint64(0)) // no cookie
	if err := unix.Sendto(s, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("ask for the owner of a connection: %w", err)
	}
	got := make([]byte, 4096)
	m, _, err := unix.Recvfrom(s, got, 0)
	if err != nil {
		return 0, fmt.Errorf("ask for the owner of a connection: %w", err)
	}
	got = got[:m]
	if m < header+answer || n.Uint16(got[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return 0, errors.New("ask for the owner of a connection: there is none")
	}
	a := got[header:]
	// A socket that listens on the port is answered where none is connected.
	if a[1] != established || string(a[4:40]) != string(id[0:36]) {
		return 0, errors.New("ask for the owner of a connection: it is not connected any more")
	}
	return int(n.Uint32(a[64:])), nil
}
