package flightrec

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	for head, want := range map[string]reader.Confidence{
		"\x80\x02}q\x00(X\x07\x00\x00\x00versionq\x01X\x03\x00\x00\x002.9q\x02X\x09\x00\x00\x00pg_config": reader.Sure,
		`{"comm_lib_version":"","entries":[{"collective_seq_id":1,"is_p2p":false,"p2p_seq_id":0`:          reader.Sure,
		"\xef\xbb\xbf{\n \"pg_config\": {}, \"pg_status\": {}}":                                           reader.Sure,
		`{"pg_config":{}}`: reader.Likely,
		// Other pickles and other JSON.
		"\x80\x02}q\x00(X\x08\x00\x00\x00segmentsq\x01]":                       reader.No,
		"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94":                    reader.No,
		`{"log_history": [{"loss": 1.0, "step": 5}]}`:                          reader.No,
		`{"version": "2", "entries": []}`:                                      reader.No,
		"rank 3: pg_config and pg_status, version 2, record_id profiling_name": reader.No,
		"":     reader.No,
		"\x80": reader.No,
		"[rank3]:[E513 13:25:57 ProcessGroupNCCL.cpp:616] last enqueued NCCL work: 5, entries": reader.No,
	} {
		if got := New().Sniff(evidence.Artifact{Path: "x_3"}, []byte(head)); got != want {
			t.Errorf("%q: %d, want %d", head, got, want)
		}
	}
}

func TestEnding(t *testing.T) {
	for name, want := range map[string]int{
		"_dump_12": 12, "nccl_trace_rank_0": 0, "comm_lib_trace_rank_7.json": 7, "/tmp/run2/fr3": 3, "a.tar!x/rank_5.pickle": 5, `d:\dumps\_dump_4`: 4,
		"dump": -1, "_dump_99999999999": -1, "dump_3_old": -1,
	} {
		n, ok := ending(name)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%s: %d, want %d", name, n, want)
		}
	}
}

// TestWhose reads one dump under several names: its groups decide whose it can be.
func TestWhose(t *testing.T) {
	data, err := os.ReadFile("testdata/_dump_2")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		rank    int
		damages int
	}{
		"_dump_2":     {2, 0},
		"_dump_0":     {0, 0}, // a member of both groups as well
		"dump":        {evidence.None, 0},
		"_dump_3":     {evidence.None, 1}, // no member of one
		"dump.1.json": {evidence.None, 1},
	} {
		c, err := readertest.Read(context.Background(), New(), nil, name, data)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Events[0].Who.Rank; got != want.rank || len(c.Damages) != want.damages {
			t.Errorf("%s: rank %d with %d damages, want %+v", name, got, len(c.Damages), want)
		}
	}
}

func TestRanks(t *testing.T) {
	c := reader.NewCollector()
	for in, want := range map[string]int{"[0, 1, 2]": 3, "[5]": 1, "": 0, "[]": 0, "[0, 0]": 0, "[-1]": 0, "0, 1": 0, "[1": 0, "[a]": 0, "[99999999999]": 0} {
		d := &dump{groups: map[string]*group{}, sink: c}
		top, err := readJSON(buffered(`{"pg_config":{"3":{"name":"3","desc":"","ranks":"` + in + `"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		d.interpret(top)
		if got := len(d.order[0].members); got != want {
			t.Errorf("%q: %d members, want %d", in, got, want)
		}
	}
}

func buffered(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }

func TestManyGroups(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"pg_config":{`)
	for i := range 2000 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"g` + strconv.Itoa(i) + `":{"ranks":"[0]"}`)
	}
	b.WriteString(`},"pg_status":{}}`)
	c, err := readertest.Read(context.Background(), New(), nil, "_dump_0", []byte(b.String()))
	if err != nil || len(c.Damages) == 0 {
		t.Errorf("error %v, %d damages; the bound of groups was not told", err, len(c.Damages))
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".events") {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := reader.NewCollector()
		in := reader.Input{Artifact: evidence.Artifact{Path: "_dump_1", Owner: evidence.Owner{Rank: evidence.None}}, Size: int64(len(data)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
		if err := New().Read(context.Background(), in, c); err != nil {
			t.Fatal(err)
		}
		for i := range c.Events {
			e := &c.Events[i]
			if s := e.Span; s.Offset < 0 || s.Length < 0 || s.Offset+s.Length > int64(len(data)) {
				t.Fatalf("span %+v lies outside the dump of %d bytes", s, len(data))
			}
			if strings.ContainsAny(e.Text+e.Span.Quote+e.Attrs.Str("calls")+e.Attrs.Str("group"), "\x1b\n\x00") {
				t.Fatalf("control characters in %q", e.Text)
			}
		}
	})
}
