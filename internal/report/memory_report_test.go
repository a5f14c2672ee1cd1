package report

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
	"github.com/inquest-dev/inquest/internal/reader/memsnap"
)

// TestCauseAdvice: every cause that internal/memory can state has words, and an entry
// whose conditions ask for it.
func TestCauseAdvice(t *testing.T) {
	stated := map[string]bool{}
	files, err := filepath.Glob("../memory/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bfact[A-Z]\w*\s*=\s*"([^"]+)"`).FindAllSubmatch(text, -1) {
			stated[string(m[1])] = true
		}
	}
	for fact := range stated {
		if _, ok := causeAdvice[fact]; !ok {
			t.Errorf("%s has no words", fact)
		}
	}
	for fact, a := range causeAdvice {
		if !stated[fact] {
			t.Errorf("%s: no snapshot states it", fact)
		}
		entry, err := os.ReadFile("../../encyclopedia/entries/device-memory/" + a.entry + ".yaml")
		if err != nil || !bytes.Contains(entry, []byte(fact)) {
			t.Errorf("%s: the entry %s does not ask for it: %v", fact, a.entry, err)
		}
	}
}

func TestSettingsInForce(t *testing.T) {
	split := int64(128 << 20)
	for want, s := range map[string]incident.MemorySettings{
		"default": {Stated: true}, "max_split_size_mb:256": {Stated: true, Conf: "max_split_size_mb:256"},
		"expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:4,garbage_collection_threshold:0.8": {Stated: true, Expandable: true, MaxSplit: &split, Roundup: "4", GCThreshold: 0.8},
	} {
		if got := settingsInForce(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// examined is what is said of snapshot files, as the engine puts it together.
func examined(t testing.TB, o memory.Options, files ...string) *incident.Memory {
	t.Helper()
	m := &incident.Memory{Schema: incident.MemorySchema, Tool: incident.Tool{Name: "inquest", Version: "source"}, Snapshots: []incident.MemorySnapshot{}, Limits: []incident.Statement{}, Artifacts: []incident.Artifact{}, NotFound: []string{}}
	var prints []*memory.Print
	for i, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(filepath.ToSlash(file), "../../")
		s, err := memsnap.Decode(context.Background(), f, memsnap.Options{Artifact: name})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		got, err := memory.Examine(context.Background(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 1 {
			got.Rank = &i
		}
		m.Snapshots = append(m.Snapshots, *got)
		m.Artifacts = append(m.Artifacts, incident.Artifact{Path: name, Kind: "memsnap", Size: 1 << 17, Fate: "read", Owner: incident.Owner{}})
		prints = append(prints, memory.PrintOf(s, got.Rank, nil))
	}
	if len(files) > 1 {
		m.Change, m.Ranks = memory.Change(prints, 10), memory.Ranks(m.Snapshots)
	}
	return m
}

// memoryResults are results of the generated runs, one of several ranks, and one of
// nothing.
func memoryResults(t testing.TB) map[string]*incident.Memory {
	t.Helper()
	small := memory.Options{Buckets: 12, Largest: 6, Blocks: 40}
	run := func(name string) string { return "../../testdata/snapshots/" + name + "/snapshot.pickle" }
	auto := small
	auto.Replay.Auto, auto.Capacity = true, 24<<30
	off := small
	off.Replay.Off = true
	return map[string]*incident.Memory{
		"fragmentation": examined(t, auto, "../../examples/fragmentation/snapshot.pickle"),
		"does-not-fit":  examined(t, small, run("does-not-fit")),
		"graph":         examined(t, off, run("retained-graph")),
		"optimizer":     examined(t, small, run("optimizer-first-step")),
		"evaluation":    examined(t, small, run("eval-outputs")),
		"ranks":         examined(t, off, run("retained-graph"), run("optimizer-first-step"), run("eval-outputs")),
		"nothing":       examined(t, small),
	}
}

func renderMemory(t testing.TB, format string, m *incident.Memory, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteMemory(&b, format, m, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMemoryReports compares the reports of generated runs with what they were.
func TestMemoryReports(t *testing.T) {
	for name, m := range memoryResults(t) {
		compare(t, filepath.Join("testdata", "memory", name+".txt"), []byte(renderMemory(t, "text", m, Options{Width: 100})))
	}
	m := memoryResults(t)["fragmentation"]
	compare(t, filepath.Join("testdata", "memory", "fragmentation.full.txt"), []byte(renderMemory(t, "text", m, Options{Width: 100, Full: true})))
	compare(t, filepath.Join("testdata", "memory", "ranks.md"), []byte(renderMemory(t, "markdown", memoryResults(t)["ranks"], Options{})))
	compare(t, filepath.Join("testdata", "memory", "fragmentation.md"), []byte(renderMemory(t, "markdown", m, Options{})))
	compare(t, filepath.Join("testdata", "memory", "result.json"), []byte(renderMemory(t, "json", m, Options{})))
}

// TestMemoryWidths: no line is wider than the page, a short report has no more than 40
// lines of which the first five are the verdict, colours change nothing else, and the
// same result gives the same bytes.
func TestMemoryWidths(t *testing.T) {
	colours := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, m := range memoryResults(t) {
		for _, width := range []int{MinWidth, 60, 80, 100, MaxWidth} {
			for _, full := range []bool{false, true} {
				o := Options{Width: width, Full: full}
				text := renderMemory(t, "text", m, o)
				if again := renderMemory(t, "text", m, o); again != text {
					t.Errorf("%s, %d columns: two reports differ", name, width)
				}
				lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				if !full && len(lines) > 40 {
					t.Errorf("%s, %d columns: %d lines", name, width, len(lines))
				}
				for i, l := range lines {
					if columns(l) > width {
						t.Errorf("%s, %d columns: line %d has %d: %q", name, width, i+1, columns(l), l)
					}
				}
				if len(m.Snapshots) > 0 {
					if !Began([]byte(text)) || !Began([]byte(renderMemory(t, "markdown", m, o))) {
						t.Errorf("%s: the report is not known by its beginning", name)
					}
					for i, label := range []string{"Peak ", "Failed ", "Avoid ", "Sure ", "Next "} {
						if !strings.HasPrefix(lines[i], label) {
							t.Errorf("%s, %d columns: line %d is %q", name, width, i+1, lines[i])
						}
					}
				}
				o.Color = true
				if got := colours.ReplaceAllString(renderMemory(t, "text", m, o), ""); got != text {
					t.Errorf("%s, %d columns: colours change the text", name, width)
				}
			}
		}
	}
}

// TestMemoryHostile: no text of a snapshot steers a terminal or leaves its place.
func TestMemoryHostile(t *testing.T) {
	for name, m := range memoryResults(t) {
		poison(reflect.ValueOf(m))
		for _, format := range []string{"text", "markdown"} {
			for _, full := range []bool{false, true} {
				got := renderMemory(t, format, m, Options{Width: 80, Full: full})
				if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
					t.Errorf("%s, %s: %q", name, format, got[max(0, i-30):min(len(got), i+10)])
				}
				if plain := codeSpan.ReplaceAllString(got, ""); format == "markdown" && strings.Contains(plain, "<script>") {
					i := strings.Index(plain, "<script>")
					t.Errorf("%s: markup in markdown: %q", name, plain[max(0, i-60):i+10])
				}
			}
		}
	}
}

var codeSpan = regexp.MustCompile("`[^`\n]*`")

// poison ends every text that comes from a file with what must not get through.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if n := v.Type().Field(i).Name; n != "Standing" && n != "Fact" && n != "Answer" && n != "Before" && n != "Fate" {
				poison(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.String:
		v.SetString(v.String() + "\x1b[31m\u202e <script> \x07\r\nnew")
	}
}

// TestMemoryStored: a stored result renders as the one that was stored.
func TestMemoryStored(t *testing.T) {
	for name, m := range memoryResults(t) {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var stored incident.Memory
		if err := json.Unmarshal(b, &stored); err != nil {
			t.Fatal(err)
		}
		for _, format := range MemoryFormats() {
			if a, b := renderMemory(t, format, m, Options{Full: true}), renderMemory(t, format, &stored, Options{Full: true}); a != b {
				t.Errorf("%s as %s is another after storing", name, format)
			}
		}
		walkNil(t, name, reflect.ValueOf(m))
	}
}
