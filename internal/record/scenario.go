package record

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/process"
	"github.com/inquest-dev/inquest/internal/redact"
)

// maxScenario bounds a scenario, in bytes.
const maxScenario = 200

// Scenario names what command does in dir, the same for the same program in the same project
// whatever its options and launcher: the project's name, a space, and the program. The project
// is named by git's remote, else by the root of its working tree, else by dir; the program is
// the script or module that is run, relative to that root. Nothing is run.
func Scenario(dir string, command []string) string {
	if dir == "" {
		dir, _ = os.Getwd()
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	root, store := findGit(dir)
	project := ""
	if root != "" {
		project = projectName(remoteOfStore(store))
	}
	if project == "" && root != "" {
		project = filepath.Base(root)
	}
	if project == "" {
		root = dir
		project = filepath.Base(dir)
	}
	return bounded(oneLine(redact.Text(project)), maxScenario/2) + " " + bounded(oneLine(redact.Text(programOf(command, dir, root))), maxScenario/2)
}

// remoteOfStore is the remote of the git folder store.
func remoteOfStore(store string) string {
	common := store
	if b, ok := readShort(filepath.Join(store, "commondir")); ok {
		common = process.Within(store, b)
	}
	return remoteOf(filepath.Join(common, "config"))
}

// projectName is the last part of a remote's address.
func projectName(remote string) string {
	remote = strings.TrimRight(strings.ReplaceAll(remote, `\`, "/"), "/")
	remote = strings.TrimSuffix(remote, ".git")
	return remote[strings.LastIndexAny(remote, "/:")+1:]
}

// oneLine turns control characters and blanks into single blanks.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// programOf names the program that command runs.
func programOf(command []string, dir, root string) string {
	p := findProgram(command)
	switch {
	case p.code != "":
		sum := sha256.Sum256([]byte(p.code))
		return p.name + " -c " + hex.EncodeToString(sum[:4])
	case p.module != "":
		return "-m " + p.module
	case p.path == "":
		return p.name
	}
	return relative(p.path, dir, root)
}

// relative is the path of a script below root, with slashes; its base name where it lies
// elsewhere, for folders differ between hosts.
func relative(name, dir, root string) string {
	abs := name
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(dir, name)
	}
	if rel, err := filepath.Rel(root, abs); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(rel)
	}
	// Root and dir may be two names of one folder.
	a, err1 := filepath.EvalSymlinks(abs)
	r, err2 := filepath.EvalSymlinks(root)
	if err1 == nil && err2 == nil {
		if rel, err := filepath.Rel(r, a); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.Base(name)
}
