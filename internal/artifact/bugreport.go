package artifact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
)

// What nvidia-bug-report.sh writes (drivers 2xx to 6xx, nvidia-bug-report.log or
// .log.gz) is a folder in one text: sections between lines of 44 underscores, each
// with a title, the command or the file that it is the output of.
//
//	____________________________________________
//
//	Start of NVIDIA bug report log file.  Please include this file, along
//	...
//	uname: Linux node-17 5.15.0-91-generic #101-Ubuntu SMP ...
//
//	____________________________________________
//
//	/usr/bin/nvidia-smi --query
//
//	==============NVSMI LOG==============
//
// Its useful sections are members of their own, in their own reader's hands: those
// that a reader is sure of, and the kernel's messages. The others, from the list
// of USB devices to that of fonts, are counted. The preamble names the host.

const reportRule = "____________________________________________"

// isBugReport reports whether head begins such a text.
func isBugReport(head []byte) bool {
	head = bytes.TrimLeft(head, " \r\n\ufeff")
	return bytes.HasPrefix(head, []byte(reportRule)) && bytes.Contains(head, []byte("Start of NVIDIA bug report log file"))
}

// kernelSections are the beginnings of titles of sections that hold messages of
// the kernel, or of the daemon of NVSwitch.
var kernelSections = [...]string{"dmesg", "Scanning kernel log files", "Scanning system log files", "/var/log/fabricmanager.log", "/var/log/nvidia-imex.log"}

func isKernelSection(title string) bool {
	for _, k := range kernelSections {
		if strings.HasPrefix(title, k) || strings.HasSuffix(title, k) {
			return true
		}
	}
	return false
}

// bugReport looks at the sections in one pass. Where the text lies open in a file
// they stay there, else those that are wanted are spooled.
func (l *looker) bugReport(ctx context.Context, it item, c content) {
	in, ok := l.enter(it)
	if !ok {
		return
	}
	rc, err := c.open()
	if err != nil {
		l.unreadable(it, err)
		return
	}
	defer rc.Close()
	b := bufio.NewReaderSize(&budgetReader{ctxReader{ctx, rc}, in.budget}, 64<<10)
	seen := make(names)
	off, named := int64(0), false
	for n := 0; ; n++ {
		s := &reportSection{b: b, off: off}
		err := s.title()
		if err == nil {
			err = in.budget.member()
		}
		if err == nil {
			if s.host != "" && !named {
				in.place, named = in.place+"/host="+s.host, true
			}
			err = l.section(ctx, in, c, s, seen)
		}
		if err == nil && !s.ended {
			_, err = io.Copy(io.Discard, s)
		}
		off = s.off
		if s.err == io.EOF && (err == nil || err == io.EOF) {
			return
		}
		if err != nil {
			l.broken(ctx, it, n, err)
			return
		}
	}
}

// section looks at one section behind its title. An error means that the report
// ends here.
func (l *looker) section(ctx context.Context, in item, c content, s *reportSection, seen names) error {
	start := s.off
	head := make([]byte, headLen)
	n, err := readInto(s, head)
	head = head[:n]
	if err != nil && err != io.EOF {
		return err
	}
	if len(bytes.TrimSpace(head)) == 0 || s.name == "" {
		return nil
	}
	it := seen.member(in, s.name, in.mod, -1)
	if l.unasked(it.path) {
		return nil
	}
	if _, sureness := l.claim(it, -1, head); sureness < sure && !isKernelSection(s.full) {
		l.pass("section of an NVIDIA bug report", int64(n))
		return nil
	}
	if c.at != nil {
		if _, err := io.Copy(io.Discard, s); err != nil {
			return err
		}
		it.stored = s.end - start
		l.look(ctx, it, c.section(start, it.stored))
		return nil
	}
	m, err := l.spool.take(io.MultiReader(bytes.NewReader(head), s))
	it.stored = m.size
	l.look(ctx, it, m.content())
	return err
}

// A reportSection reads one section, up to the rule that begins the next.
type reportSection struct {
	b     *bufio.Reader
	off   int64  // of what is read next
	end   int64  // of the section, once it ended
	full  string // the title as it stands
	name  string // of the member
	host  string // that the preamble names
	rest  []byte // of the current line
	whole bool   // the next bytes begin a line
	ended bool
	err   error // of the text below
}

// title reads the lines before the content. The preamble is all title.
func (s *reportSection) title() error {
	s.whole = true
	for range 64 {
		if !s.next() {
			return s.fail()
		}
		line := strings.TrimSpace(string(s.rest))
		s.off += int64(len(s.rest))
		s.rest = nil
		switch {
		case line == "":
		case s.full == "":
			s.full = strings.TrimSuffix(strings.TrimPrefix(line, "*** "), ":")
			s.name = sectionName(s.full)
			if !strings.HasPrefix(s.full, "Start of NVIDIA bug report") {
				return nil
			}
			s.name = ""
		case strings.HasPrefix(line, "uname: Linux "):
			if f := strings.Fields(line); len(f) > 2 && len(f[2]) < 100 {
				s.host = f[2]
			}
		}
	}
	return nil
}

// sectionName makes a member's name of a title: the command without its folder.
func sectionName(title string) string {
	command, args, _ := strings.Cut(title, " ")
	if strings.HasPrefix(command, "/") && args != "" {
		command = path.Base(command)
	}
	if strings.HasPrefix(title, "Scanning kernel log files") || strings.HasPrefix(title, "Scanning system log files") {
		return "kernel messages"
	}
	name := memberName(strings.TrimSpace(command + " " + args))
	return name[:min(len(name), 120)]
}

// fail is the error below, nil at the section's end and at that of the text.
func (s *reportSection) fail() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// next makes rest hold the next piece of the section; false at its end.
func (s *reportSection) next() bool {
	if len(s.rest) > 0 {
		return true
	}
	if s.ended {
		return false
	}
	part, err := s.b.ReadSlice('\n')
	begins := s.whole
	s.whole = err == nil
	if err != nil && err != bufio.ErrBufferFull {
		s.err = err
	}
	if begins && string(bytes.TrimRight(part, "\r\n")) == reportRule {
		s.end, s.ended = s.off, true
		s.off += int64(len(part))
		return false
	}
	if len(part) == 0 {
		s.end, s.ended = s.off, true
		return false
	}
	s.rest = part
	return true
}

func (s *reportSection) Read(p []byte) (int, error) {
	if !s.next() {
		if err := s.fail(); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	s.off += int64(n)
	return n, nil
}
