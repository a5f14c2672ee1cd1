package hosttext

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// df reads df in blocks (-k, -m, the default) and in human units (-h). The name
// of a file system that is too long for its column stands on a line of its own.
type df struct {
	unit   int64
	inodes bool
	types  bool // a Type column (df -T)
	name   string
}

func dfHeader(_ *parser, text string) table {
	if !strings.HasPrefix(text, "Filesystem") || !strings.HasSuffix(text, "Mounted on") {
		return nil
	}
	f := columns(text)
	if len(f) < 6 || f[0] != "Filesystem" {
		return nil
	}
	t := &df{unit: 1 << 10, types: f[1] == "Type"}
	kind := f[1]
	if t.types {
		kind = f[2]
	}
	switch kind {
	case "Size", "1K-blocks", "1024-blocks":
	case "1M-blocks", "1MB-blocks":
		t.unit = mib
	case "1G-blocks", "1GB-blocks":
		t.unit = 1 << 30
	case "512-blocks":
		t.unit = 512
	case "1B-blocks":
		t.unit = 1
	case "Inodes":
		t.inodes = true
	default:
		return nil
	}
	return t
}

func (t *df) row(p *parser, l line) bool {
	f := columns(l.text)
	want := 6
	if t.types {
		want++
	}
	if len(f) == 1 {
		t.name = f[0]
		return true
	}
	if t.name != "" && len(f) == want-1 {
		f = append([]string{t.name}, f...)
	}
	t.name = ""
	if len(f) < want {
		return false
	}
	n := want - 5
	percent, err := strconv.ParseInt(strings.TrimSuffix(f[n+3], "%"), 10, 64)
	if err != nil && f[n+3] != "-" {
		return false
	}
	if t.inodes {
		return true
	}
	attrs := evidence.Attrs{"mount": evidence.TextOf(strings.Join(f[n+4:], " "))}
	set(attrs, "size", f[n], t.unit)
	set(attrs, "used", f[n+1], t.unit)
	set(attrs, "avail", f[n+2], t.unit)
	if err == nil {
		attrs["percent"] = evidence.IntOf(percent)
	}
	p.s.Event(p.event(evidence.DiskUsage, l, p.who(), attrs))
	return true
}

func (t *df) end(*parser) {}

// quota reads quota (-s) and lfs quota (-h): a star behind a figure says that
// it is over its quota.
//
//	Filesystem    used   quota   limit   grace   files   quota   limit   grace
//	/scratch        2T*     2T      2T       -   91120       0       0       -
type quota struct {
	unit int64
	name string
}

func quotaHeader(_ *parser, text string) table {
	if strings.HasPrefix(text, "Disk quotas for ") {
		return &quota{unit: 1 << 10}
	}
	if !strings.HasPrefix(text, "Filesystem") {
		return nil
	}
	if f := columns(text); len(f) >= 5 && f[0] == "Filesystem" && f[2] == "quota" && f[3] == "limit" {
		return &quota{unit: 1 << 10}
	}
	return nil
}

func (t *quota) row(p *parser, l line) bool {
	f := columns(l.text)
	if len(f) == 1 {
		t.name = f[0]
		return true
	}
	if t.name != "" {
		f = append([]string{t.name}, f...)
		t.name = ""
	}
	if len(f) < 4 {
		return false
	}
	used, over := strings.CutSuffix(f[1], "*")
	attrs := evidence.Attrs{"mount": evidence.TextOf(f[0])}
	u, ok := size(used, t.unit)
	if !ok {
		return strings.HasPrefix(l.text, "(") || strings.Contains(l.text, "quota")
	}
	attrs["used"] = u
	for i, name := range [...]string{"quota", "limit"} {
		if v, ok := exact(strings.TrimSuffix(f[i+2], "*"), t.unit); ok && v.Hi > 0 { // 0 means none
			attrs[name] = v
		}
	}
	for _, c := range f[2:] {
		over = over || strings.HasSuffix(c, "*") && len(c) > 1
	}
	attrs["exceeded"] = evidence.BoolOf(over)
	p.s.Event(p.event(evidence.QuotaUsage, l, p.who(), attrs))
	return true
}

func (t *quota) end(*parser) {}
