package artifact

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestFindWhatLookFound holds that every artifact that a walk finds is found again by its name,
// with the same bytes, in folders, archives of every kind, compressed and nested.
func TestFindWhatLookFound(t *testing.T) {
	text := "log line 1\nlog line 2\n"
	members := []member{{name: "a/rank_0.log", text: text + "a\n"}, {name: "a/rank_0.log", text: text + "twice\n"}, {name: "b c/out.log", text: text + "b\n"}}
	nested := makeTar(t, []member{{name: "in.zip", text: string(makeZip(t, 8, members...))}, {name: "x.log", text: text + "x\n"}}...)
	files := map[string]string{
		"plain.log": text, "odd!name.log": text + "odd\n", "sub/deep/rank_1.log": text + "deep\n", "sub/zip.zip": string(makeZip(t, 8, members...)),
		"t.tar": string(makeTar(t, members...)), "n.tar": string(nested), "wide.log": utf16LE(text),
		"c.log.gz": string(compress(t, "gzip", []byte(text+"gz\n"))), "t.tar.zst": string(compress(t, "zstd", nested)),
	}
	if runtime.GOOS != "windows" {
		files["new\nline\u202e.log"] = text + "quoted\n"
	}
	dir := tree(t, files)
	o := Options{Sniff: sniff}
	for _, paths := range [][]string{{dir}, {dir + "/sub", dir + "/*.log", dir + "/t.tar", dir + "/n.tar", dir + "/t.tar.zst", dir + "/c.log.gz"}} {
		seen, err := Look(t.Context(), paths, o)
		if err != nil {
			t.Fatal(err)
		}
		r := seen.Result(o)
		n := 0
		for i := range r.Files {
			if r.Files[i].Fate != "" {
				continue
			}
			n++
			f, err := Find(t.Context(), paths, r.Files[i].Path, o)
			if err != nil {
				t.Errorf("%s: %v", r.Files[i].Path, err)
				continue
			}
			if got, want := all(t, &f.File), all(t, &r.Files[i]); got != want || f.Kind != r.Files[i].Kind {
				t.Errorf("%s has %q, had %q", f.Path, got, want)
			}
			f.Close()
		}
		r.Close()
		if n < 15 {
			t.Errorf("%d artifacts under %s", n, paths)
		}
	}
}

// TestFindStaysInside asks for what a walk does not show.
func TestFindStaysInside(t *testing.T) {
	dir := tree(t, map[string]string{"secret.log": "log line 1\n", "job/rank_0.log": "log line 1\n", "job/node_modules/x.log": "log line 1\n"})
	job := filepath.Join(dir, "job")
	o := Options{Sniff: sniff}
	shown := filepath.ToSlash(job)
	names := []string{"", "rank_0.log", shown, shown + "/", shown + "/../secret.log", shown + "/./rank_0.log", shown + "//rank_0.log", shown + "/node_modules/x.log",
		shown + "/rank_0.log!x", shown + "/rank_0.log/", shown + "/nothing.log", filepath.ToSlash(dir) + "/secret.log", `"` + shown + `/../secret.log"`, `"`, `"\`,
		shown + "/rank_0.log\x00", strings.Repeat("!", 1000), shown + "/" + strings.Repeat("a!", 5000)}
	if os.Symlink(filepath.Join(dir, "secret.log"), filepath.Join(job, "link.log")) == nil && os.Symlink(dir, filepath.Join(job, "up")) == nil {
		names = append(names, shown+"/link.log", shown+"/up/secret.log")
	}
	for _, name := range names {
		if f, err := Find(t.Context(), []string{job}, name, o); !errors.Is(err, ErrNoArtifact) {
			t.Errorf("%q: %v, %+v", name, err, f)
		}
	}
	for _, name := range []string{"-", "-!x.log"} {
		if _, err := Find(t.Context(), []string{"-"}, name, o); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Find(t.Context(), []string{filepath.Join(dir, "gone"), job}, shown+"/rank_0.log", o); err != nil {
		t.Errorf("beside a path that is gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, []string{job}, shown+"/rank_0.log", o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestFindKeepsOneMember holds that of a compressed archive only the member that is asked for is
// kept, and that what comes behind it is not read.
func TestFindKeepsOneMember(t *testing.T) {
	var members []member
	for i := range 300 {
		members = append(members, member{name: "rank_" + string(rune('0'+i%10)) + "/" + strings.Repeat("x", i+1) + ".log", text: strings.Repeat("log line 1\n", 4000)})
	}
	whole := compress(t, "gzip", makeTar(t, members...))
	name := filepath.Join(tree(t, map[string]string{"job.tar.gz": string(whole[:len(whole)*2/3])}), "job.tar.gz") // cut behind it
	f, err := Find(t.Context(), []string{name}, filepath.ToSlash(name)+"!"+members[20].name, Options{Sniff: sniff})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.spool.end != 0 || f.spool.held > 64<<10 {
		t.Errorf("%d bytes are kept in memory, %d in a file", f.spool.held, f.spool.end)
	}
	if got := all(t, &f.File); got != members[20].text {
		t.Errorf("%d bytes", len(got))
	}
}

func all(t *testing.T, f *File) string {
	t.Helper()
	text, err := read(t, *f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func utf16LE(s string) string {
	b := []byte{0xff, 0xfe}
	for _, r := range s {
		b = append(b, byte(r), byte(r>>8))
	}
	return string(b)
}
