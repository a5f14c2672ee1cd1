package sqlitefile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Log is what a write-ahead log holds for readers: of each page the latest version of a
// committed transaction. Frames count while they carry the salt of the log's header
// and the running checksum is right; what follows is of an earlier use of the file.
//
//	header  4 magic 0x377f0682 or ...83, 4 version 3007000, 4 page size, 4 checkpoints, 8 salt, 8 checksum
//	frame   4 page, 4 pages of the database if a transaction ends here, 8 salt, 8 checksum, the page
type Log struct {
	Frames      int64  // valid and committed
	Uncommitted int64  // valid frames behind the last commit: no part of the database
	Pages       uint32 // of the database after the last commit, 0 without one
	Broken      bool   // the header is no log's, or of another page size: all of it is left out

	frames map[uint32]int64 // offset of a page's latest version in the log
}

const (
	walHeader   = 32
	walFrame    = 24
	walMagic    = 0x377f0682 // the last bit says that checksums are big-endian
	walVersion  = 3007000
	maxWALPages = 16 << 20 // different pages kept
)

func (l *Log) empty() bool { return l == nil || l.Pages == 0 }

func (l *Log) has(n uint32) bool {
	if len(l.frames) == 0 {
		return false
	}
	_, ok := l.frames[n]
	return ok
}

// frame returns where a page's latest version begins in the log.
func (l *Log) frame(n uint32) (int64, bool) {
	if l == nil || len(l.frames) == 0 {
		return 0, false
	}
	at, ok := l.frames[n]
	return at, ok
}

// readLog reads the log through once.
func readLog(ctx context.Context, r io.ReaderAt, size int64, pageSize int) (*Log, error) {
	l := &Log{}
	in := io.NewSectionReader(r, 0, size)
	head := make([]byte, walHeader)
	if _, err := io.ReadFull(in, head); err != nil {
		l.Broken = true
		return l, nil
	}
	magic := binary.BigEndian.Uint32(head)
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 != 0 {
		order = binary.BigEndian
	}
	var s [2]uint32
	sum(&s, head[:24], order)
	if magic&^1 != walMagic || binary.BigEndian.Uint32(head[4:]) != walVersion || int(binary.BigEndian.Uint32(head[8:])) != pageSize ||
		s[0] != binary.BigEndian.Uint32(head[24:]) || s[1] != binary.BigEndian.Uint32(head[28:]) {
		l.Broken = true
		return l, nil
	}
	salt := string(head[16:24])
	l.frames = map[uint32]int64{}
	waiting := map[uint32]int64{} // of the transaction that is not committed yet
	frame := make([]byte, walFrame+pageSize)
	for at := int64(walHeader); at+int64(len(frame)) <= size; at += int64(len(frame)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(in, frame); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			return nil, fmt.Errorf("read the log: %w", err)
		}
		page, commit := binary.BigEndian.Uint32(frame), binary.BigEndian.Uint32(frame[4:])
		if page == 0 || string(frame[8:16]) != salt {
			break
		}
		sum(&s, frame[:8], order)
		sum(&s, frame[walFrame:], order)
		if s[0] != binary.BigEndian.Uint32(frame[16:]) || s[1] != binary.BigEndian.Uint32(frame[20:]) {
			break
		}
		waiting[page] = at + walFrame
		l.Uncommitted++
		if len(waiting)+len(l.frames) > maxWALPages {
			return nil, fmt.Errorf("more than %d pages in the log: %w", maxWALPages, ErrUnsupported)
		}
		if commit == 0 {
			continue
		}
		for n, off := range waiting {
			l.frames[n] = off
		}
		clear(waiting)
		l.Frames += l.Uncommitted
		l.Uncommitted = 0
		l.Pages = commit
	}
	return l, nil
}

// sum goes on with the checksum over b, whose length is a multiple of 8.
func sum(s *[2]uint32, b []byte, order binary.ByteOrder) {
	s0, s1 := s[0], s[1]
	if order == binary.LittleEndian {
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.LittleEndian.Uint32(b) + s1
			s1 += binary.LittleEndian.Uint32(b[4:]) + s0
		}
	} else {
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.BigEndian.Uint32(b) + s1
			s1 += binary.BigEndian.Uint32(b[4:]) + s0
		}
	}
	s[0], s[1] = s0, s1
}
