package engine_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidencefile"
	"github.com/inquest-dev/inquest/internal/incident"
)

// elsewhere goes to an empty folder. What lies in the repository is read before.
func elsewhere(t *testing.T) {
	t.Helper()
	options(t)
	t.Chdir(t.TempDir())
}

// written is what an incident is compared by.
func written(t testing.TB, inc *incident.Incident) []byte {
	t.Helper()
	b, err := json.MarshalIndent(inc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// scan writes the evidence of paths to a new file and returns its name.
func scan(t testing.TB, dir string, paths ...string) string {
	t.Helper()
	return scanAs(t, dir, "", "", paths...)
}

func scanAs(t testing.TB, dir, name, host string, paths ...string) string {
	t.Helper()
	f, err := os.CreateTemp(dir, "*.inq")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := engine.Scan(context.Background(), options(t, paths...), name, host, f); err != nil {
		t.Fatalf("scan %v: %v", paths, err)
	}
	return f.Name()
}

// spread scans paths in groups, merges in any grouping and order, leaves some as they
// are, and returns what is to be diagnosed then.
func spread(t testing.TB, r *rand.Rand, dir string, paths []string) []string {
	t.Helper()
	left := slices.Clone(paths)
	r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	var out []string
	for len(left) > 0 {
		n := 1 + r.IntN(len(left))
		if r.IntN(4) == 0 {
			out = append(out, left[:n]...)
		} else {
			out = append(out, scan(t, dir, left[:n]...))
		}
		left = left[n:]
	}
	for len(out) > 1 && r.IntN(3) > 0 {
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		n := 1 + r.IntN(len(out))
		out = append(out[n:], scan(t, dir, out[:n]...))
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// agree fails if the evidence of paths does not say what paths say.
func agree(t *testing.T, r *rand.Rand, paths []string) {
	t.Helper()
	want := written(t, diagnose(t, paths...))
	dir := t.TempDir()
	for range 2 {
		of := spread(t, r, dir, paths)
		if got := written(t, diagnose(t, of...)); !bytes.Equal(got, want) {
			t.Fatalf("diagnosed from %d of evidence and logs, the incident differs:\n%s", len(of), firstDiff(want, got))
		}
	}
}

// TestScanCases: evidence in any grouping, and the logs themselves, give the same
// incident.
func TestScanCases(t *testing.T) {
	var dirs []string
	for _, pattern := range []string{root + "/testdata/runs/*/input", root + "/examples/*", root + "/testdata/snapshots/*", root + "/../shared/cases/*/*"} {
		m, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, m...)
	}
	if len(dirs) < 50 {
		t.Fatalf("only %d cases", len(dirs))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, dir := range dirs {
		var files []string
		filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		})
		t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) { agree(t, r, files) })
	}
}

// jobFiles makes a job of ranks on hosts, with what else lies in such a place:
// another launch, floods, cut and empty files, pictures.
func jobFiles(t *testing.T, r *rand.Rand) []string {
	t.Helper()
	s := base(faults[r.IntN(len(faults))])
	s.ranks, s.perHost = 1+r.IntN(40), 1+r.IntN(8)
	s.faulty = r.IntN(s.ranks)
	s.noise, s.stamped = r.IntN(5), r.IntN(2) == 0
	var names []string
	write := func(name string, data []byte) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for name, text := range s.files() {
		host := "node01"
		var rank int
		if n, _ := fmt.Sscanf(name, "rank_%d.log", &rank); n == 1 {
			host = fmt.Sprintf("node%02d", rank/s.perHost)
		}
		if r.IntN(6) == 0 { // more than one of many keeps
			var b strings.Builder
			for i := range 300 + r.IntN(3000) {
				fmt.Fprintf(&b, "step %d | loss %.3f | grad_norm %.2f\n", i, 2+r.Float64(), r.Float64())
				if r.IntN(3) == 0 {
					fmt.Fprintf(&b, "RuntimeError: CUDA error: an illegal memory access was encountered (%d)\n", i)
				}
			}
			text = b.String() + text
		}
		switch r.IntN(12) {
		case 0:
			text = text[:r.IntN(len(text))]
		case 1:
			text = ""
		case 2:
			text = strings.ReplaceAll(text, "\n", "\r\n")
		case 3:
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			io.WriteString(w, text)
			w.Close()
			name, text = name+".gz", z.String()
			if r.IntN(3) == 0 {
				text = text[:len(text)/2]
			}
		case 4:
			text += "token=abcdefgh12345678 --hf_token hf_" + strings.Repeat("Zy9", 12) + "\nRuntimeError: CUDA error: unspecified launch failure\n"
		}
		write(filepath.Join("logs", host, name), []byte(text))
	}
	for i := range r.IntN(4) {
		write(fmt.Sprintf("logs/plot%d.png", i), []byte("\x89PNG\r\n\x1a\n"))
	}
	if r.IntN(3) == 0 {
		write("logs/slurm-4711.out", []byte("step 3 | loss 2.5\nRuntimeError: CUDA error: misaligned address\n"))
		write("logs/slurm-4712.out", []byte("step 4 | loss 2.5\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"))
	}
	slices.Sort(names)
	return names
}

func TestScanProperty(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 77))
			elsewhere(t)
			paths := jobFiles(t, r)
			if r.IntN(2) == 0 { // whole folders
				folders := map[string]bool{}
				for _, p := range paths {
					folders[filepath.Dir(p)] = true
				}
				delete(folders, "logs")
				paths = slices.DeleteFunc(paths, func(p string) bool { return filepath.Dir(p) != "logs" })
				for f := range folders {
					paths = append(paths, f)
				}
				slices.Sort(paths)
			}
			agree(t, r, paths)
		})
	}
}

// TestScanTwice: the bytes of evidence depend on the files alone, and a merge on
// what is merged.
func TestScanTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	elsewhere(t)
	paths := jobFiles(t, r)
	read := func(name string) []byte {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dir := t.TempDir()
	if a, b := read(scan(t, dir, paths...)), read(scan(t, dir, paths...)); !bytes.Equal(a, b) {
		t.Error("two scans of the same files differ")
	}
	var parts []string
	for chunk := range slices.Chunk(paths, 1+len(paths)/5) {
		parts = append(parts, scan(t, dir, chunk...))
	}
	flat := read(scan(t, dir, parts...))
	slices.Reverse(parts)
	nested := scan(t, dir, parts[0], scan(t, dir, parts[1:]...), parts[1])
	if !bytes.Equal(flat, read(nested)) {
		t.Error("merged in another order and grouping, the evidence differs")
	}
}

// TestScanSecrets: what is meant to be carried about holds no secret.
func TestScanSecrets(t *testing.T) {
	elsewhere(t)
	secret := "hf_" + strings.Repeat("aB3", 12)
	text := "$ python train.py --hf_token " + secret + "\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    login(token='" + secret + "')\nValueError: bad token " + secret + "\nstep 1 | loss 2.0 " + secret + "\n"
	if err := os.WriteFile("train.log", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(scan(t, ".", "train.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	if err := evidencefile.Read(f, func(*evidencefile.Scan) {}, func(_ evidencefile.Place, b []byte) {
		if n++; bytes.Contains(b, []byte(secret[:20])) {
			t.Errorf("the record holds the secret:\n%q", b)
		}
	}); err != nil || n != 1 {
		t.Fatalf("%d records, %v", n, err)
	}
}

// TestScanHosts: files of one path on several hosts stay apart, by the name that a
// scan gives them, else by a number and with a word about it.
func TestScanHosts(t *testing.T) {
	logs := []string{"step 1 | loss 2.5\nRuntimeError: CUDA error: misaligned address\n", "step 1 | loss 2.5\nstep 2 | loss 2.4\n"}
	var plain, named []string
	out := t.TempDir()
	for i, text := range logs {
		elsewhere(t)
		if err := os.WriteFile("rank.log", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		host := fmt.Sprintf("h%d", i+1)
		plain = append(plain, scan(t, out, "rank.log"))
		named = append(named, scanAs(t, out, host, host, "rank.log"))
	}
	inc := diagnose(t, named...)
	if len(inc.Artifacts) != 2 || inc.Artifacts[0].Path != "h1/rank.log" || inc.Artifacts[0].Owner.Host != "h1" || inc.FirstFault == nil || inc.FirstFault.Span.Artifact != "h1/rank.log" ||
		inc.FirstFault.Host == nil || *inc.FirstFault.Host != "h1" || inc.FirstFault.Span.Quote == "" {
		t.Errorf("named: %+v %+v", inc.Artifacts, inc.FirstFault)
	}
	want := written(t, diagnose(t, plain...))
	slices.Reverse(plain)
	if got := written(t, diagnose(t, scan(t, out, plain...), plain[0])); !bytes.Equal(got, want) {
		t.Errorf("two files of one path depend on the order: %s", firstDiff(want, got))
	}
	inc = diagnose(t, plain...)
	if len(inc.Artifacts) != 2 || inc.Artifacts[0].Path != "rank.log" || inc.Artifacts[1].Path != "rank.log#2" || !states(inc, "different artifacts have this path") {
		t.Errorf("conflict: %+v %+v", inc.Artifacts, inc.Limits)
	}
}

// TestScanCut: of an evidence file that is cut or damaged what stands before is
// read, and the rest is said to be missing.
func TestScanCut(t *testing.T) {
	elsewhere(t)
	r := rand.New(rand.NewPCG(9, 9))
	whole, err := os.ReadFile(scan(t, ".", jobFiles(t, r)...))
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		cut := slices.Clone(whole)
		if n := r.IntN(len(cut)); r.IntN(2) == 0 {
			cut = cut[:n]
		} else {
			cut[n] ^= byte(1 + r.IntN(255))
		}
		if err := os.WriteFile("cut.inq", cut, 0o644); err != nil {
			t.Fatal(err)
		}
		inc := diagnose(t, "cut.inq")
		if !slices.ContainsFunc(inc.Artifacts, func(a incident.Artifact) bool { return a.Path == "cut.inq" && a.Fate != "read" }) {
			t.Fatalf("%d bytes of %d: the damage is not told of: %+v", len(cut), len(whole), inc.Limits)
		}
	}
}

// TestScanSize: what is kept of a log does not grow with it.
func TestScanSize(t *testing.T) {
	elsewhere(t)
	r := rand.New(rand.NewPCG(3, 4))
	var b bytes.Buffer
	size := func(lines int) int64 {
		for i := range lines {
			switch r.IntN(4) {
			case 0:
				fmt.Fprintf(&b, "node-07:4001:5001 [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] via P2P/IPC/%x\n", i%8, i%24, i%8, i%8, i%7, i%7, r.Uint64())
			case 1:
				fmt.Fprintf(&b, "2026-03-04 %02d:%02d:%02d,%03d - INFO - trainer - tokens/s=%.1f data_time=%.4fs\n", i/3600%24, i/60%60, i%60, r.IntN(1000), r.Float64()*1e5, r.Float64())
			default:
				fmt.Fprintf(&b, "{'loss': %.4f, 'grad_norm': %.12f, 'learning_rate': %.12g, 'epoch': %.2f}\n", 2+r.Float64(), r.Float64(), r.Float64()/5e4, float64(i)/5000)
			}
		}
		b.WriteString("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
		if err := os.WriteFile("train.log", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(scan(t, ".", "train.log"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	if n := size(150_000); b.Len() < 12<<20 || n > 256<<10 {
		t.Errorf("evidence of %d bytes for %d of log", n, b.Len())
	}
}

// TestScanManyFiles: a job has as many evidence files as hosts, and more of them
// than a process may have open.
func TestScanManyFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("more than a thousand scans, one after the other")
	}
	elsewhere(t)
	var files []string
	for i := range 1100 {
		name := fmt.Sprintf("rank_%04d.log", i)
		text := fmt.Sprintf("step %d | loss 2.5\n", i)
		if i == 700 {
			text += "RuntimeError: CUDA error: misaligned address\n"
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	want := written(t, diagnose(t, files...))
	dir := t.TempDir()
	var parts []string
	for _, f := range files {
		parts = append(parts, scan(t, dir, f))
	}
	if got := written(t, diagnose(t, parts...)); !bytes.Equal(got, want) {
		t.Error(firstDiff(want, got))
	}
	if got := written(t, diagnose(t, scan(t, dir, parts...))); !bytes.Equal(got, want) {
		t.Error(firstDiff(want, got))
	}
}
