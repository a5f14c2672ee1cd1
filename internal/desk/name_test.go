package desk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/desk"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{
		"a", "rank_0.log", "logs/rank_0.log", "run-2026-08-01T10:15:00/train.log", "日志/训练.log", ".hidden", "..a", "a..b", "console.log", "community.txt", "lpt10", "com", "a b.log",
		strings.Repeat("d/", 63) + "f", strings.Repeat("x", 255), "COM/a.log", "éàü.out", "nul_count.log", "Screenshot 10\u202fAM.png",
	} {
		if err := desk.CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "/etc/passwd", "..", ".", "../a", "a/../b", "a/..", "./a", "a/./b", "a//b", "a/", `a\b`, `..\a`, `C:\a`, "C:a", "c:/a", `\\host\share`, "//host/share",
		"nul", "NUL", "con", "Aux.log", "logs/com1", "COM1.txt", "lpt9.tar.gz", "COM¹", "com2 .txt", "NUL:", "conin$", "a/nul/b", "prn ", "a.", "a ", "logs./a", "... ",
		"a\x00b", "a\nb", "a\x1b[31m", "\u202egnp.exe", "a\u2028b", "a\x80", "\xff", "a\ufffdb", strings.Repeat("x", 256), strings.Repeat("d/", 64) + "f", strings.Repeat("abcdefgh/", 120) + "x",
	} {
		if err := desk.CheckName(bad); !errors.Is(err, desk.ErrName) {
			t.Errorf("%q is taken", bad)
		}
	}
}

// FuzzCheckName puts what is taken below a folder and looks where it came to lie.
func FuzzCheckName(f *testing.F) {
	for _, s := range []string{"a/b.log", "../a", "a/../../b", `a\..\b`, "C:x", "nul", "a\x00", "a.", "日志/x", "\u202ea", strings.Repeat("a/", 80)} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name string) {
		err := desk.CheckName(name)
		if err != nil {
			if !errors.Is(err, desk.ErrName) || !utf8.ValidString(err.Error()) || len(err.Error()) > 1000 {
				t.Fatalf("%q: %v", name, err)
			}
			return
		}
		full := filepath.Join(dir, filepath.FromSlash(name))
		rel, err := filepath.Rel(dir, full)
		if err != nil || filepath.ToSlash(rel) != name || !filepath.IsLocal(rel) {
			t.Fatalf("%q comes to lie at %q", name, full)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		top, _, _ := strings.Cut(name, "/")
		defer root.RemoveAll(top)
		if parent := filepath.Dir(filepath.FromSlash(name)); parent != "." {
			if err := root.MkdirAll(parent, 0o700); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
		}
		if err := root.WriteFile(filepath.FromSlash(name), nil, 0o600); err != nil {
			t.Fatalf("%q cannot be made: %v", name, err)
		}
	})
}
