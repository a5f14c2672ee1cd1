package record

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const commitA = "0123456789abcdef0123456789abcdef01234567"

func TestGitFiles(t *testing.T) {
	for _, c := range []struct {
		name           string
		files          map[string]string
		dir            string
		commit, branch string
		remote         string
		none           bool
	}{
		{"a branch", map[string]string{".git/HEAD": "ref: refs/heads/feature/x\n", ".git/refs/heads/feature/x": commitA + "\n"}, "", commitA, "feature/x", "", false},
		{"a packed branch", map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/packed-refs": "# pack-refs with: peeled fully-peeled sorted \nffffffffffffffffffffffffffffffffffffffff refs/heads/other\n" + commitA + " refs/heads/main\n^1111111111111111111111111111111111111111\n"}, "", commitA, "main", "", false},
		{"no branch", map[string]string{".git/HEAD": commitA + "\n"}, "", commitA, "", "", false},
		{"no commit yet", map[string]string{".git/HEAD": "ref: refs/heads/main\n"}, "", "", "main", "", false},
		{"from a folder within", map[string]string{".git/HEAD": commitA, "a/b/x": ""}, "a/b", commitA, "", "", false},
		{"a worktree", map[string]string{"main/.git/HEAD": "ref: refs/heads/main\n", "main/.git/config": "[remote \"origin\"]\n\turl = https://h.example.org/a/b.git\n", "main/.git/refs/heads/side": commitA, "main/.git/worktrees/w/HEAD": "ref: refs/heads/side\n", "main/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n"}, "w", commitA, "side", "https://h.example.org/a/b.git", false},
		{"a log-in", map[string]string{".git/HEAD": commitA, ".git/config": "[remote \"origin\"]\n\turl = https://me:ghp_abcdefghijklmnopqrstuvwxyz0123456789@h.example.org/a/b.git\n"}, "", commitA, "", "https://h.example.org/a/b.git", false},
		{"a log-in by ssh", map[string]string{".git/HEAD": commitA, ".git/config": "[remote \"up\"]\n\turl = git@h.example.org:a/b.git\n"}, "", commitA, "", "h.example.org:a/b.git", false},
		{"a name that leaves", map[string]string{".git/HEAD": "ref: ../../../secret\n", "secret": commitA}, "", "", "../../../secret", "", false},
		{"a ring of names", map[string]string{".git/HEAD": "ref: refs/heads/a\n", ".git/refs/heads/a": "ref: refs/heads/b\n", ".git/refs/heads/b": "ref: refs/heads/a\n"}, "", "", "a", "", false},
		{"an empty folder .git", map[string]string{".git/x": ""}, "", "", "", "", true},
		{"an odd file .git", map[string]string{".git": "what\n"}, "", "", "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for n, text := range c.files {
				write(t, filepath.Join(root, n), text)
			}
			dir := filepath.Join(root, c.dir)
			if top, _ := findGit(filepath.Dir(root)); top != "" {
				t.Skip("the folder of temporary files is in a working tree")
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // git itself is not asked
			g, problem := gitState(ctx, dir)
			if c.none {
				if g != nil {
					t.Fatalf("%+v", *g)
				}
				return
			}
			if g == nil {
				t.Fatal("none")
			}
			if g.Commit != c.commit || g.Branch != c.branch || g.Remote != c.remote || !g.Unknown || g.Changed || problem == "" {
				t.Errorf("%+v, %s", *g, problem)
			}
		})
	}
}

func TestGitChanged(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_INDEX_FILE="+filepath.Join(root, ".git", "index"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	digests := map[string]string{}
	state := func(when string, changed bool) {
		t.Helper()
		g, problem := gitState(context.Background(), root)
		if strings.Contains(problem, "no answer") {
			t.Skip(problem) // a busy machine
		}
		if g == nil || problem != "" || g.Changed != changed || (g.Digest != "") != changed || g.Unknown {
			t.Fatalf("%s: %+v %s", when, g, problem)
		}
		if other, twice := digests[g.Digest]; twice && changed {
			t.Errorf("%s has the digest of %s", when, other)
		}
		digests[g.Digest] = when
	}
	t.Setenv("GIT_INDEX_FILE", filepath.Join(t.TempDir(), "index"))
	run("init", "-q", "-b", "main")
	write(t, filepath.Join(root, "train.py"), "a = 1\n")
	state("without a commit", true)
	run("add", ".")
	run("commit", "-q", "-m", "first")
	state("clean", false)
	write(t, filepath.Join(root, "train.py"), "a = 2\n")
	state("a change", true)
	write(t, filepath.Join(root, "train.py"), "a = 3\n")
	state("another change", true)
	run("add", ".")
	write(t, filepath.Join(root, "new file.py"), "b = 1\n")
	state("a new file", true)
	write(t, filepath.Join(root, "new file.py"), "b = 2\n")
	state("another text in it", true)
	if _, err := os.Stat(filepath.Join(root, ".git", "index.lock")); err == nil {
		t.Error("a lock was left")
	}
	run("checkout", "-q", "-f", "main")
	run("clean", "-fdq")
	run("reset", "-q", "--hard")
	state("clean again", false)
}

// A git that hangs is not waited for, and its absence is said.
func TestGitThatDoesNotAnswer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	root := t.TempDir()
	write(t, filepath.Join(root, ".git", "HEAD"), commitA)
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	g, problem := gitState(context.Background(), root)
	if g == nil || !g.Unknown || !strings.Contains(problem, "not installed") {
		t.Errorf("%+v %s", g, problem)
	}
	for name, script := range map[string]string{"no answer": "#!/bin/sh\nexec /bin/sleep 60\n", "exit status": "#!/bin/sh\nexit 3\n"} {
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		g, problem := gitState(context.Background(), root)
		if g == nil || !g.Unknown || g.Commit != commitA || !strings.Contains(problem, name) {
			t.Errorf("%s: %+v %s", name, g, problem)
		}
	}
}
