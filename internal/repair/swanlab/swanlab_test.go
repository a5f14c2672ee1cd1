package swanlab_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/swanrecord"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	reader "github.com/inquest-dev/inquest/internal/reader/swanlab"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
	"github.com/inquest-dev/inquest/internal/repair/swanlab"
)

const testdata = "../../reader/swanlab/testdata/"

var logs = ranklog.New(evidence.Plan{})

// folder makes the folder of a run.
func folder(t *testing.T, log string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "swanlog", "run-20261201_050000-x")
	for name, from := range map[string]string{"run-x.swanlab": log, "files/config.yaml": "files/config.yaml", "other.txt": "README.md"} {
		data, err := os.ReadFile(testdata + from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFormat(t *testing.T) {
	for _, log := range []string{"finished", "killed", "flipped"} {
		t.Run(log, func(t *testing.T) { repairtest.Run(t, reader.New(logs), swanlab.New(), folder(t, log+".swanlab")) })
	}
	t.Run("file", func(t *testing.T) { repairtest.Run(t, reader.New(logs), swanlab.New(), testdata+"crashed.swanlab") })
}

// records are the records of a log, and the whole ones.
func records(t *testing.T, name string) (list []swanrecord.Record, whole [][]byte) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := leveldblog.NewReader(f, swanrecord.Ident)
	for {
		x, err := r.Next()
		var d *leveldblog.Damage
		if err == io.EOF {
			return list, whole
		}
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Clone(x.Data)
		rec, err := swanrecord.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		list, whole = append(list, rec), append(whole, data)
	}
}

// field is the last value of a field with a length.
func field(body []byte, n int) string {
	v := ""
	m := protowire.Decode(body)
	for m.Next() {
		if m.Number() == n {
			v = m.Text()
		}
	}
	return v
}

// TestRecords: what is changed, and that all else is as it was.
func TestRecords(t *testing.T) {
	src := folder(t, "killed.swanlab")
	res, out := repairtest.Copy(t, reader.New(logs), swanlab.New(), filepath.Dir(src), nil)
	logs, _ := filepath.Glob(filepath.Join(out, "run-20261201_050000-x", "run-*.swanlab"))
	if len(logs) != 1 || filepath.Base(logs[0]) != "run-"+res.Runs[0].NewID+".swanlab" || res.Runs[0].NewID == res.Runs[0].ID {
		t.Fatalf("logs %v, run %+v", logs, res.Runs[0])
	}
	for name, there := range map[string]bool{"files/config.yaml": true, "other.txt": false} {
		if _, err := os.Stat(filepath.Join(out, "run-20261201_050000-x", name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	was, wasBytes := records(t, filepath.Join(src, "run-x.swanlab"))
	is, isBytes := records(t, logs[0])
	var kept [][]byte
	for i, r := range was {
		if p, _ := r.Point(); r.Kind == swanrecord.Scalar && p.Value-p.Value != 0 || r.Kind == swanrecord.Start {
			continue
		}
		kept = append(kept, wasBytes[i])
	}
	for i := range kept {
		if i+1 >= len(isBytes) || !bytes.Equal(kept[i], isBytes[i+1]) {
			t.Fatalf("record %d differs", i)
		}
	}
	start := is[0].Body
	if is[0].Kind != swanrecord.Start || field(start, 10) != res.Runs[0].NewID || field(start, 6) != "inquest:repaired" || !strings.HasPrefix(field(start, 5), "tiny\n\n") || field(start, 1) != "toy" {
		t.Errorf("start %q", start)
	}
	rest := is[len(kept)+1:]
	if rest[0].Kind != swanrecord.Column || field(rest[0].Body, 3) != "inquest/failed_segment" {
		t.Errorf("column %+v", rest[0])
	}
	ones := 0
	for _, r := range rest[1 : len(rest)-1] {
		p, err := r.Point()
		if err != nil || string(p.Key) != "inquest/failed_segment" {
			t.Errorf("mark %+v, %v", p, err)
		}
		if p.Value == 1 {
			ones++
		}
	}
	if last := rest[len(rest)-1]; ones == 0 || last.Kind != swanrecord.Finish || last.Num != -2 || !bytes.HasPrefix(last.Body, []byte{8, 2}) || field(last.Body, 2) == "" || field(last.Body, 3) == "" {
		t.Errorf("%d marks, finish %+v", ones, last)
	}
	if len(res.Left) == 0 || !strings.Contains(strings.Join(res.Left, " "), "save records") {
		t.Errorf("left %q", res.Left)
	}
}

// TestVersion1: older logs are refused, with the reason.
func TestVersion1(t *testing.T) {
	_, err := repairtest.Repair(t.Context(), reader.New(logs), swanlab.New(), testdata+"backup.swanlab", filepath.Join(t.TempDir(), "copy"), nil)
	if !errors.Is(err, engine.ErrNotRepaired) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(testdata + "backup.swanlab"); errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestUnchanged: a log in which nothing is wrong comes out the same but for its start record.
func TestUnchanged(t *testing.T) {
	var b bytes.Buffer
	w := leveldblog.NewWriter(&b, swanrecord.Ident+"\x02")
	start, _ := hex.DecodeString("0a03746f79520178") // project toy, id x
	all := [][]byte{swanrecord.Encode(-1, 1700000000, swanrecord.Start, start)}
	for i := range int64(5000) {
		all = append(all, swanrecord.Encode(i+1, 1700000000, swanrecord.Scalar, swanrecord.EncodePoint("loss", i, 1700000000+float64(i), 1/float64(i+1))))
	}
	all = append(all, swanrecord.Encode(-2, 1700000000, swanrecord.Finish, []byte{8, 1}))
	for _, r := range all {
		w.Write(r)
	}
	w.Flush()
	src := filepath.Join(t.TempDir(), "run-x.swanlab")
	if err := os.WriteFile(src, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	_, out := repairtest.Copy(t, reader.New(logs), swanlab.New(), src, nil)
	logs, _ := filepath.Glob(filepath.Join(out, "*.swanlab"))
	_, got := records(t, logs[0])
	if len(got) != len(all) {
		t.Fatalf("%d records, want %d", len(got), len(all))
	}
	for i := 1; i < len(all); i++ {
		if !bytes.Equal(got[i], all[i]) {
			t.Fatalf("record %d differs", i)
		}
	}
}
