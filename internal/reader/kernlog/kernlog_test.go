package kernlog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/kernlog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func newReader(t testing.TB) reader.Reader {
	t.Helper()
	c, err := catalog.Load(encyclopedia.FS)
	if err != nil {
		t.Fatal(err)
	}
	return kernlog.New(c.Plan())
}

func TestReader(t *testing.T) {
	readertest.Run(t, newReader(t), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

// TestSniff: what is ours by its frames, and what other readers read better.
func TestSniff(t *testing.T) {
	r := newReader(t)
	for _, f := range []struct {
		path, head string
		want       reader.Confidence
	}{
		{"a.txt", "[   12.345678] usb 1-1: new high-speed USB device\n[   12.400000] hub found\n", reader.Sure},
		{"a.txt", "<6>[   12.345678] usb 1-1: new device\n", reader.Sure},
		{"a.txt", "6,1,2,-;text\n SUBSYSTEM=pci\n", reader.Sure},
		{"a.txt", "__CURSOR=s=1\nMESSAGE=x\n", reader.Sure},
		{"a.txt", "Mar  3 11:02:19 n1 kernel: NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus.\n", reader.Sure},
		{"messages", "Mar  3 11:02:19 n1 sshd[8]: session opened\n", reader.Sure},
		{"a.txt", "[Tue Mar  3 11:02:19 2026] NVRM: something\n", reader.Sure},
		{"dmesg-n1.txt", "[Tue Mar  3 11:02:19 2026] anything\n", reader.Sure},
		{"a.txt", "[Mar 03 2026 11:00:01] [INFO] [tid 3300] Connected\n", reader.Sure},
		// Those of other readers.
		{"a.txt", "Mar  3 11:02:19 n1 train[8]: step 1\n", reader.No},
		{"a.txt", "[Tue Mar  3 11:02:19 2026] step 1 loss 2.3\n", reader.No},
		{"dmesg.log", "[Tue Mar  3 11:02:19 2026] step 1 loss 2.3\n", reader.No},
		{"train.log", "step 1 loss 2.3\n[   12.345678] NVRM: Xid (PCI:0000:5d:00): 79, x\nstep 2 loss 2.2\nstep 3 loss 2.1\n", reader.No},
		{"train.log", "2026-03-03 11:02:19,123 INFO trainer: step 1\n", reader.No},
		{"train.log", "2026-03-03T11:02:19.123456Z stderr F step 1\n", reader.No},
		{"node.txt", "Mar  3 11:02:19 n1 train[8]: starting\nMar  3 11:02:20 n1 train[8]: ready\nMar  3 11:02:21 n1 kernel: NVRM: Xid (PCI:0000:5d:00): 79, x\n", reader.No},
		{"a.json", "{\"log\":\"x\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-02T03:04:05Z\"}\n", reader.No},
		{"a.csv", "index, name, memory.total [MiB]\n0, NVIDIA H100, 81559 MiB\n", reader.No},
		{"a.txt", "1,2,3\n4,5,6\n", reader.No},
		{"a.txt", "[rank0]: Traceback (most recent call last):\n", reader.No},
		{"a.log", "[    0.123456] loading model\n[   12.345678] step 1 loss 2.3\n", reader.No},
		{"a.json", "{\n  \"loss\": 2.3\n}\n", reader.No},
		{"a.bin", "6,1,2,-;te\x00xt\n", reader.No},
		{"a.txt", "", reader.No},
	} {
		if got := r.Sniff(evidence.Artifact{Path: f.path}, []byte(f.head)); got != f.want {
			t.Errorf("%s %q: %d, want %d", f.path, f.head, got, f.want)
		}
	}
}

// read gives what the reader makes of text.
func read(t *testing.T, text string) *reader.Collector {
	t.Helper()
	c, err := readertest.Read(context.Background(), newReader(t), nil, "a.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const xid = "NVRM: Xid (PCI:0000:5d:00): 79, pid=71402, name=python3, GPU has fallen off the bus.\n"

// TestClocks: seconds since boot become a date only where the file ties the two,
// with an error that holds what the tie leaves open.
func TestClocks(t *testing.T) {
	at := func(s string) time.Time { x, _ := time.Parse(time.RFC3339, s); return x }
	for _, f := range []struct {
		name, text string
		clock      string
		want       time.Time
		zone       string
		least      time.Duration // the error is at least and at most
		most       time.Duration
	}{
		{"nothing ties", "[ 3600.000000] " + xid, "boot", time.Unix(3600, 0).UTC(), "", 0, time.Millisecond},
		{"board clock", "[    1.000000] rtc_cmos 00:01: setting system clock to 2026-03-01T10:00:01 UTC (1772359201)\n[ 3601.000000] " + xid, "wall", at("2026-03-01T11:00:01Z"), "Z", time.Second, 3 * time.Second},
		{"board clock as before 5.0", "[    1.000000] rtc_cmos 00:01: setting system clock to 2026-03-01 10:00:01 UTC (1772359201)\n[ 3601.000000] " + xid, "wall", at("2026-03-01T11:00:01Z"), "Z", time.Second, 3 * time.Second},
		{"boot time of the kernel", "btime 1772359200\n[ 3600.000000] " + xid, "wall", at("2026-03-01T11:00:00Z"), "Z", time.Second, 3 * time.Second},
		{"date and uptime behind", "[ 3600.000000] " + xid + "$ date\nSun Mar  1 12:00:00 UTC 2026\n$ uptime\n 12:00:00 up  2:00,  1 user,  load average: 0.00, 0.01, 0.05\n", "wall", at("2026-03-01T10:59:30Z"), "UTC", 30 * time.Second, 40 * time.Second},
		{"date and /proc/uptime", "$ date -Is\n2026-03-01T13:00:00+01:00\n$ cat /proc/uptime\n7200.00 900.00\n[ 3600.000000] " + xid, "wall", at("2026-03-01T11:00:00Z"), "+01:00", time.Second, 5 * time.Second},
		{"uptime -s", "$ uptime -s\n2026-03-01 10:00:00\n[ 3600.000000] " + xid, "wall", at("2026-03-01T11:00:00Z"), "", time.Second, 4 * time.Second},
		{"syslog has both", "Mar  1 11:00:00 n1 kernel: [ 3600.000000] " + xid, "wall", time.Date(0, 3, 1, 11, 0, 0, 0, time.UTC), "", 0, time.Second},
		{"a date of another boot", "btime 1772359200\n[ 9000.000000] x\n[    1.000000] Linux version 6.8\n[ 3600.000000] " + xid, "boot", time.Unix(3600, 0).UTC(), "", 0, time.Millisecond},
		{"a date without an uptime", "Sun Mar  1 12:00:00 UTC 2026\n[ 3600.000000] " + xid, "boot", time.Unix(3600, 0).UTC(), "", 0, time.Millisecond},
	} {
		c := read(t, f.text)
		if len(c.Events) != 1 {
			t.Errorf("%s: %d events", f.name, len(c.Events))
			continue
		}
		s := c.Events[0].Stamp
		if s.Clock != f.clock || !s.Time.Equal(f.want) || s.Zone != f.zone || s.Error < f.least || s.Error > f.most {
			t.Errorf("%s: %s %s zone %q ±%s", f.name, s.Clock, s.Time, s.Zone, s.Error)
		}
	}
}

// TestDriftWidensError: a tie days away bounds less.
func TestDriftWidensError(t *testing.T) {
	tie := "btime 1772359200\n"
	near, far := read(t, tie+"[   60.000000] "+xid), read(t, tie+"[864000.000000] "+xid)
	if n, f := near.Events[0].Stamp.Error, far.Events[0].Stamp.Error; f < n+time.Minute {
		t.Errorf("a minute after the tie ±%s, ten days after it ±%s", n, f)
	}
}

// TestDumpOrder: the parts of a crash dump stand newest first, and their spans say
// which came first.
func TestDumpOrder(t *testing.T) {
	c := read(t, "Panic#1 Part1\n<0>[   20.000000] Kernel panic - not syncing: x\nPanic#1 Part2\n<3>[   10.000000] "+xid)
	if len(c.Events) != 2 || c.Events[0].Kind != evidence.NodeFailure || c.Events[1].Kind != evidence.Xid {
		t.Fatalf("events %v", c.Events)
	}
	if a, b := c.Events[1].Span.Index, c.Events[0].Span.Index; a <= 0 || a >= b {
		t.Errorf("the older part has index %d, the newer %d", a, b)
	}
}

// TestOOMBlock: one kill, with the figures of the whole block.
func TestOOMBlock(t *testing.T) {
	data, err := os.ReadFile("testdata/kern.log")
	if err != nil {
		t.Fatal(err)
	}
	var kills []evidence.Event
	for _, e := range read(t, string(data)).Events {
		switch e.Kind {
		case evidence.HostOOMKill:
			kills = append(kills, e)
		case evidence.HostMemReport:
			t.Errorf("part of the block stands alone: %s", e.Text)
		}
	}
	if len(kills) != 1 {
		t.Fatalf("%d kills", len(kills))
	}
	k := kills[0]
	for name, want := range map[string]string{"constraint": "memcg", "group": "/slice/pod-9", "invoker": "trainer", "name": "pt_data_worker", "largest": "pt_data_worker",
		"limit": "64.00 GiB", "used": "64.00 GiB", "rss": "28.00 GiB", "shmem": "3.00 GiB", "tasks": "3", "largest_pid": "61207", "largest_rss": "31.20 GiB"} {
		if got := k.Attrs[name].String(); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	if k.Who.PID != 61207 || k.Who.Host != "trn-14" {
		t.Errorf("who %+v", k.Who)
	}
}

// TestPublic accounts for every line of the public kernel logs: what is a record,
// which give an event and of which kind. No text of those files is kept here.
func TestPublic(t *testing.T) {
	const dir, golden = "../../../../shared/data/kernel_logs", "public.golden"
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Skip("the public kernel logs are not here")
	}
	r := newReader(t)
	var got strings.Builder
	got.WriteString("# Of each public kernel log: its digest, what its lines are, and kind@line of each event.\n")
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if r.Sniff(evidence.Artifact{Path: f.Name()}, data[:min(len(data), 4096)]) != reader.Sure {
			t.Errorf("%s is not recognised", f.Name())
		}
		c, err := readertest.Read(context.Background(), r, nil, f.Name(), data)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "\n%s sha256:%x\n", f.Name(), sha256.Sum256(data))
		n := map[string]int64{}
		for _, x := range c.Tallies {
			n[x.What] = x.N
			fmt.Fprintf(&got, "  %d %s\n", x.N, x.What)
		}
		if sum := n["blank"] + n["headers"] + n["continued"] + n["unframed"] + n["records"]; sum != n["lines"] || n["lines"] != lineCount(data) {
			t.Errorf("%s: %d lines of %d are accounted for, the file has %d", f.Name(), sum, n["lines"], lineCount(data))
		}
		for i := range c.Events {
			e := &c.Events[i]
			fmt.Fprintf(&got, "  %s@%d %s", e.Kind, e.Span.Line, e.Line)
			if e.Who.BusID != "" {
				fmt.Fprintf(&got, " bus %s", e.Who.BusID)
			}
			if e.Who.PID != evidence.None {
				fmt.Fprintf(&got, " pid %d", e.Who.PID)
			}
			fmt.Fprintf(&got, " %s\n", e.Stamp.Clock)
		}
		for _, d := range c.Damages {
			fmt.Fprintf(&got, "  damage@%d %v\n", d.Span.Line, d.Err)
		}
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("differs from %s (rewrite with -update):\n%s", golden, got.String())
	}
}

func lineCount(data []byte) int64 {
	n := int64(bytes.Count(data, []byte{'\n'}))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// TestAccounting: every line of our own files is accounted for too.
func TestAccounting(t *testing.T) {
	files, err := filepath.Glob("testdata/*.t*")
	if err != nil || len(files) == 0 {
		t.Fatal("no files")
	}
	r := newReader(t)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c, err := readertest.Read(context.Background(), r, nil, f, data)
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int64{}
		for _, x := range c.Tallies {
			n[x.What] = x.N
		}
		if sum := n["blank"] + n["headers"] + n["continued"] + n["unframed"] + n["records"]; sum != lineCount(data) {
			t.Errorf("%s: %d lines accounted for, the file has %d", f, sum, lineCount(data))
		}
	}
}

// TestBraceAlone: a brace that begins no entry takes nothing away from what follows.
func TestBraceAlone(t *testing.T) {
	c := read(t, "[   88.000000] x\n{\n[   89.000000] "+xid+"}\n")
	if len(c.Events) != 1 || c.Events[0].Span.Line != 3 {
		t.Errorf("events %v", c.Events)
	}
}

// TestFieldLength: a length that the file does not hold is damage, and takes no
// memory.
func TestFieldLength(t *testing.T) {
	c := read(t, "__CURSOR=s=0\n__REALTIME_TIMESTAMP=1772535739123456\nMESSAGE\n\xff\xff\xff\xff\xff\xff\xff\x7fabc")
	if len(c.Damages) == 0 {
		t.Error("no damage is reported")
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".events") && len(data) < 16<<10 {
			f.Add(data)
		}
	}
	f.Add([]byte("[Tue Mar  3 11:02:19 2026] NVRM: Xid (PCI:0000:5d:00): 79\n[  +1.000000] x\n{\"__REALTIME_TIMESTAMP\":\"1\",\"MESSAGE\":[256,-1]}\n"))
	r := newReader(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r.Sniff(evidence.Artifact{Path: "a.txt"}, data[:min(len(data), 4096)])
		c := reader.NewCollector()
		err := r.Read(context.Background(), reader.Input{
			Artifact: evidence.Artifact{Path: "a.txt", Kind: "kernlog"},
			Open:     func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
			Size:     int64(len(data)),
		}, c)
		for i := range c.Events {
			s := c.Events[i].Span
			if s.Offset < 0 || s.Length < 0 || s.Offset+s.Length > int64(len(data)) || string(data[s.Offset:s.Offset+s.Length]) != s.Quote {
				t.Fatalf("span %+v does not quote the artifact", s)
			}
		}
		if err == nil && !bytes.HasPrefix(data, []byte("__CURSOR=")) {
			n := map[string]int64{}
			for _, x := range c.Tallies {
				n[x.What] = x.N
			}
			if sum := n["blank"] + n["headers"] + n["continued"] + n["unframed"] + n["records"]; sum != lineCount(data) {
				t.Fatalf("%d lines accounted for of %d", sum, lineCount(data))
			}
		}
	})
}
