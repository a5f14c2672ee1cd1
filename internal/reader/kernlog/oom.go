package kernlog

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

const (
	maxBlock = 20_000 // records of one block: a table of that many processes
	maxTail  = 8      // records behind the kill in which it is still spoken of
)

// An oomBlock puts together what the kernel's OOM killer prints (mm/oom_kill.c):
//
//	NAME invoked oom-killer: ...               who asked for memory
//	memory: usage NkB, limit NkB, failcnt N    of a control group
//	[  pid  ]   uid  tgid total_vm  rss ... name   the table of processes, in pages
//	oom-kill:constraint=...,task=NAME,pid=N    the choice
//	... Kill process N (NAME) score N          the same before 5.0
//	... Killed process N (NAME) total-vm:NkB, anon-rss:NkB, ...
//	oom_reaper: reaped process N (NAME), ...
//
// The event is the kill, with the figures of the rest. It stands at the line that
// names its victim first.
type oomBlock struct {
	inside  bool // the record in hand belongs to a block
	open    bool
	records int
	first   evidence.Event // the invocation
	boot    int
	figures evidence.Attrs
	choice  *evidence.Event // constraint line, or the announcement of old kernels
	columns []string
	largest [2]int64 // pid and pages
	name    string
	tasks   int64
	pages   map[int64]int64 // resident pages by pid
	killed  int64           // pid
	tail    int
}

var (
	invoked    = lazyre.New(`^(.{1,32}?) invoked oom-killer:`)
	usageLine  = lazyre.New(`^memory: usage (\d+kB), limit (\d+kB), failcnt`)
	tableLine  = lazyre.New(`^\[ *pid *\] +uid +tgid +total_vm +rss `)
	tableRow   = lazyre.New(`^\[ *(\d+)\] +\d+ +\d+ +\d+ +(\d+) `)
	groupName  = lazyre.New(`oom_memcg=([^,]+)`)
	residents  = lazyre.New(`anon-rss:(\d+)kB(?:, file-rss:(\d+)kB)?(?:, shmem-rss:(\d+)kB)?`)
	blockLines = lazyre.New(`^(?:Mem-Info:|active_anon:|Node \d+ |lowmem_reserve|\d+ total pagecache|\d+ pages |Swap cache|Free swap|Total swap|swap: usage|memory\+swap: usage|kmem: usage|Memory cgroup stats|Tasks state|Unreclaimable slab|anon \d|Tasks in |Task in )`)
)

// take sees each record with the events that wordings made of it, and returns those
// that remain.
func (b *oomBlock) take(r *record, events []evidence.Event) []evidence.Event {
	b.inside = false
	if b.killed > 0 {
		if b.tail++; b.tail > maxTail {
			b.killed = 0
		}
	}
	if !b.open && len(events) == 0 {
		return events
	}
	if m := invoked.FindStringSubmatch(r.text); m != nil {
		var out []evidence.Event
		if e, _, ok := b.end(); ok {
			out = append(out, e)
		}
		*b = oomBlock{open: true, inside: true, figures: evidence.Attrs{"invoker": evidence.TextOf(textline.Cut(m[1], 64))}, pages: map[int64]int64{}, boot: r.boot}
		b.first = r.blank(evidence.HostMemReport)
		b.first.Attrs["what"] = evidence.TextOf("oom-killer-invoked")
		for i := range events {
			if events[i].Kind == evidence.HostMemReport {
				b.first.Line = events[i].Line
			}
		}
		return out
	}
	if b.open {
		if b.records++; b.records > maxBlock {
			b.open = false
		}
		b.figure(r)
	}
	rest := events[:0]
	for _, e := range events {
		if out, mine := b.event(r, e); !mine {
			rest = append(rest, e)
		} else if out != nil {
			rest = append(rest, *out)
		}
	}
	return rest
}

// figure reads what a record of an open block says.
func (b *oomBlock) figure(r *record) {
	switch m := usageLine.FindStringSubmatch(r.text); {
	case m != nil:
		b.inside = true
		if v, ok := size(m[1]); ok {
			b.figures["used"] = v
		}
		if v, ok := size(m[2]); ok {
			b.figures["limit"] = v
		}
	case tableLine.MatchString(r.text):
		b.inside = true
		b.columns = strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(r.text))
	case b.columns != nil && tableRow.MatchString(r.text):
		b.inside = true
		b.row(r.text)
	case blockLines.MatchString(r.text) || detail(r):
		b.inside = true
	}
}

// row reads a row of the table of processes.
func (b *oomBlock) row(text string) {
	m := tableRow.FindStringSubmatch(text)
	pid, err1 := strconv.ParseInt(m[1], 10, 64)
	pages, err2 := strconv.ParseInt(m[2], 10, 64)
	if err1 != nil || err2 != nil {
		return
	}
	b.tasks++
	if len(b.pages) < maxBlock {
		b.pages[pid] = pages
	}
	if b.largest[0] == 0 || pages > b.largest[1] {
		b.largest = [2]int64{pid, pages}
		b.name = ""
		if f := strings.Fields(text); len(f) >= len(b.columns) {
			b.name = textline.Cut(f[len(f)-1], 64)
		}
	}
}

// event takes an event of the killer. mine says that it was one; out is what
// remains of it.
func (b *oomBlock) event(r *record, e evidence.Event) (out *evidence.Event, mine bool) {
	if e.Kind == evidence.HostMemReport && b.open && b.inside {
		return nil, true
	}
	if e.Kind != evidence.HostOOMKill {
		return nil, false
	}
	b.inside = true
	pid := e.Attrs["pid"].I
	switch e.Attrs.Str("what") {
	case "reaped":
		if pid == b.killed {
			return nil, true
		}
		return &e, true
	case "record":
		if !b.open {
			*b = oomBlock{open: true, inside: true, figures: evidence.Attrs{}, boot: r.boot}
		}
		if m := groupName.FindStringSubmatch(r.text); m != nil {
			b.figures["group"] = evidence.TextOf(textline.Cut(m[1], 256))
		}
		b.choice = &e
		return nil, true
	}
	if !residents.MatchString(r.text) { // "Kill process N (NAME) score N" of old kernels: the kill follows
		if !b.open {
			*b = oomBlock{open: true, inside: true, figures: evidence.Attrs{}, boot: r.boot}
		}
		b.choice = &e
		return nil, true
	}
	if b.open {
		b.complete(&e, r.text)
		if c := b.choice; c != nil && c.Who.PID == e.Who.PID {
			e.Span, e.Stamp, e.Text, e.Line = c.Span, c.Stamp, c.Text, c.Line
		}
	}
	*b = oomBlock{inside: true, killed: pid}
	return &e, true
}

// complete adds the figures of the block to the kill.
func (b *oomBlock) complete(e *evidence.Event, text string) {
	for n, v := range b.figures {
		e.Attrs[n] = v
	}
	if b.choice != nil {
		if c, ok := b.choice.Attrs["constraint"]; ok && e.Attrs.Str("constraint") == "" || ok && b.choice.Attrs.Str("what") == "record" {
			e.Attrs["constraint"] = c
		}
	}
	if b.tasks == 0 {
		return
	}
	e.Attrs["tasks"] = evidence.IntOf(b.tasks)
	e.Attrs["largest_pid"] = evidence.IntOf(b.largest[0])
	if b.name != "" {
		e.Attrs["largest"] = evidence.TextOf(b.name)
	}
	// The table counts pages, whose size it does not state; the kill is in kB.
	if page := pageSize(text, b.pages[e.Attrs["pid"].I]); page > 0 && b.largest[1] < (1<<62)/page {
		n := b.largest[1] * page
		e.Attrs["largest_rss"] = evidence.SizeOf(n, n)
	}
}

// pageSize is the page size by which the resident pages of a process are the kB
// that its kill states, 0 if none fits.
func pageSize(kill string, pages int64) int64 {
	m := residents.FindStringSubmatch(kill)
	if m == nil || pages <= 0 {
		return 0
	}
	var kb int64
	for _, s := range m[1:] {
		if n, err := strconv.ParseInt(s, 10, 48); err == nil {
			kb += n
		}
	}
	for _, page := range []int64{4, 16, 64} {
		if d := kb - pages*page; d <= kb/20 && -d <= kb/20 {
			return page << 10
		}
	}
	return 0
}

// end closes a block that names no kill: what was chosen, or that the killer ran.
func (b *oomBlock) end() (evidence.Event, int, bool) {
	open, choice := b.open, b.choice
	b.open, b.choice = false, nil
	if !open {
		return evidence.Event{}, 0, false
	}
	if choice != nil {
		b.complete(choice, "")
		return *choice, b.boot, true
	}
	for _, n := range []string{"used", "limit"} {
		if v, ok := b.figures[n]; ok {
			b.first.Attrs[n] = v
		}
	}
	return b.first, b.boot, b.first.Kind != ""
}
