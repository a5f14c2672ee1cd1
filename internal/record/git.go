package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/process"
	"github.com/inquest-dev/inquest/internal/redact"
)

// gitWait bounds how long git may look for what is changed.
const gitWait = 2 * time.Second

// gitState is the state of the working tree around dir, nil where there is none. Commit, branch
// and remote are read from git's files; for what is changed git itself is asked, in a way that
// writes nothing, if it is installed and quick. problem says what is not known.
func gitState(ctx context.Context, dir string) (g *incident.Git, problem string) {
	root, store := findGit(dir)
	if root == "" {
		return nil, ""
	}
	g = &incident.Git{Root: root}
	common := store
	if b, ok := readShort(filepath.Join(store, "commondir")); ok {
		common = process.Within(store, b)
	}
	head, ok := readShort(filepath.Join(store, "HEAD"))
	if !ok {
		return g, "git: HEAD could not be read; commit and branch are not known"
	}
	if ref, ok := strings.CutPrefix(head, "ref: "); ok {
		g.Branch = bounded(strings.TrimPrefix(ref, "refs/heads/"), maxValue)
		g.Commit = resolveRef(store, common, ref)
	} else if isCommit(head) {
		g.Commit = head
	}
	g.Remote = remoteOf(filepath.Join(common, "config"))
	var err error
	if g.Changed, g.Digest, err = changed(ctx, root); err != nil {
		switch {
		case errors.Is(err, exec.ErrNotFound):
			problem = "git: not installed; whether the working tree differs from the commit is not known"
		case errors.Is(err, context.DeadlineExceeded):
			problem = "git: no answer in " + gitWait.String() + "; whether the working tree differs from the commit is not known"
		default:
			problem = "git: " + bounded(redact.Text(err.Error()), maxValue) + "; whether the working tree differs from the commit is not known"
		}
		g.Unknown = true
	}
	return g, problem
}

// findGit walks up from dir to the folder that has .git: a folder, or a file that names one, as
// of a worktree or a submodule.
func findGit(dir string) (root, store string) {
	for range 64 {
		p := filepath.Join(dir, ".git")
		if i, err := os.Stat(p); err == nil {
			if i.IsDir() {
				if _, err := os.Stat(filepath.Join(p, "HEAD")); err == nil {
					return dir, p
				}
			} else if b, ok := readShort(p); ok {
				if to, ok := strings.CutPrefix(b, "gitdir: "); ok {
					return dir, process.Within(dir, to)
				}
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", ""
}

// readShort reads the first line of a small file.
func readShort(name string) (string, bool) {
	b, ok := readBounded(name, 64<<10)
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimRight(line, "\r "), ok
}

func readBounded(name string, n int64) ([]byte, bool) {
	i, err := os.Stat(name)
	if err != nil || !i.Mode().IsRegular() {
		return nil, false
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, n))
	return b, err == nil
}

// resolveRef is the commit that a ref names, "" for a branch without one. Refs name refs only
// in HEAD, but a few steps are followed.
func resolveRef(store, common, ref string) string {
	for range 4 {
		if strings.Contains(ref, "..") || filepath.IsAbs(ref) {
			return ""
		}
		v := ""
		for _, dir := range []string{store, common} {
			if b, ok := readShort(filepath.Join(dir, filepath.FromSlash(ref))); ok {
				v = b
				break
			}
		}
		if v == "" {
			b, _ := readBounded(filepath.Join(common, "packed-refs"), 16<<20)
			for line := range strings.Lines(string(b)) {
				if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref && isCommit(id) {
					return id
				}
			}
			return ""
		}
		if isCommit(v) {
			return v
		}
		next, ok := strings.CutPrefix(v, "ref: ")
		if !ok {
			return ""
		}
		ref = next
	}
	return ""
}

func isCommit(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// remoteOf is the address of the remote origin in a configuration of git, else of its first
// remote, without a log-in.
func remoteOf(config string) string {
	b, _ := readBounded(config, 1<<20)
	first, origin, section := "", "", ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		if !strings.HasPrefix(section, `[remote "`) {
			continue
		}
		name, v, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "url") {
			continue
		}
		v = strings.Trim(strings.TrimSpace(v), `"`)
		if first == "" {
			first = v
		}
		if section == `[remote "origin"]` && origin == "" {
			origin = v
		}
	}
	if origin == "" {
		origin = first
	}
	return bounded(withoutLogIn(origin), maxValue)
}

// withoutLogIn takes user and password from an address; of git@host:path the user stays away
// too.
func withoutLogIn(url string) string {
	if scheme, rest, ok := strings.Cut(url, "://"); ok {
		host, path, slash := strings.Cut(rest, "/")
		if i := strings.LastIndexByte(host, '@'); i >= 0 {
			host = host[i+1:]
		}
		url = scheme + "://" + host
		if slash {
			url += "/" + path
		}
	} else if i := strings.IndexByte(url, '@'); i >= 0 && strings.Contains(url[i:], ":") && !strings.ContainsAny(url[:i], "/\\") {
		url = url[i+1:]
	}
	return redact.Text(url)
}

// Of files that git does not track as much as this goes into a digest.
const (
	untrackedFiles = 256
	untrackedBytes = 1 << 20 // of one file
)

// changed asks git whether the tree differs from the commit, and makes a digest of what differs:
// the status, the changes, and the files that git neither tracks nor ignores, large ones by
// their size. No lock is taken and no index written.
func changed(ctx context.Context, root string) (differs bool, digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, gitWait)
	defer cancel()
	var status bytes.Buffer
	if err := git(ctx, root, &status, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=dirty"); err != nil || status.Len() == 0 {
		return false, "", err
	}
	h := sha256.New()
	h.Write(status.Bytes())
	if err := git(ctx, root, h, "diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"); ctx.Err() != nil {
		return true, "", ctx.Err()
	} else if err != nil {
		io.WriteString(h, "no commit") // HEAD names none yet; the status says what is there
	}
	n := 0
	for entry := range strings.SplitSeq(status.String(), "\x00") {
		name, ok := strings.CutPrefix(entry, "?? ")
		if !ok {
			continue
		}
		if n++; n > untrackedFiles || ctx.Err() != nil {
			break
		}
		hashFile(h, filepath.Join(root, filepath.FromSlash(name)))
	}
	return true, hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func hashFile(h io.Writer, name string) {
	i, err := os.Lstat(name)
	if err != nil || !i.Mode().IsRegular() {
		return
	}
	fmt.Fprintf(h, "\x00%d\x00", i.Size())
	if i.Size() <= untrackedBytes {
		b, _ := readBounded(name, untrackedBytes)
		h.Write(b)
	}
}

func git(ctx context.Context, root string, w io.Writer, args ...string) error {
	args = append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-C", root}, args...)
	c := exec.CommandContext(ctx, "git", args...)
	for _, e := range os.Environ() {
		// The tree that is asked for is root's, whatever a hook or a script has set.
		if name, _, _ := strings.Cut(e, "="); name != "GIT_DIR" && name != "GIT_WORK_TREE" && name != "GIT_INDEX_FILE" && name != "GIT_COMMON_DIR" {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	c.Stdout = w
	c.WaitDelay = 100 * time.Millisecond
	err := c.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
