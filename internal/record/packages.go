package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/process"
)

// Bounds of what is read of a Python's packages.
const (
	maxPackages = 5000
	maxFolders  = 16 // of packages
)

// python finds the Python that command would use in dir with the variables vars, and what is
// installed for it. Nothing is run: the version stands in pyvenv.cfg or in the name of the
// library's folder, packages in the names of the folders of their metadata.
func python(ctx context.Context, dir string, command []string, vars variables) (interpreter string, packages map[string]string, problem string) {
	packages = map[string]string{}
	path := interpreterOf(command, dir, vars)
	if path == "" {
		return "", packages, ""
	}
	in := installation(path, vars)
	interpreter = bounded(oneLine(path), maxValue)
	if in.version != "" {
		interpreter += " " + in.version
	}
	if len(in.folders) == 0 {
		return interpreter, packages, "packages: no folder of packages was found for " + interpreter
	}
	for _, folder := range in.folders {
		if err := listPackages(ctx, folder, packages); err != nil {
			return interpreter, packages, "packages: " + err.Error()
		}
	}
	return interpreter, packages, ""
}

// interpreterOf is the Python that runs command, as a path; "" where none does or none is found.
func interpreterOf(command []string, dir string, vars variables) string {
	if len(command) == 0 {
		return ""
	}
	p := findProgram(command)
	if p.python != "" && p.python != "python" {
		return lookPath(p.python, dir, vars)
	}
	// A launcher is a script of the environment that it belongs to.
	for _, w := range []string{command[0], first(p.words)} {
		if w == "" {
			continue
		}
		if path := lookPath(w, dir, vars); path != "" {
			if by := shebang(path, dir, vars); by != "" {
				return by
			}
		}
	}
	if p.python == "" && p.module == "" && !strings.HasSuffix(p.path, ".py") {
		return ""
	}
	for _, name := range []string{"python", "python3"} {
		if path := lookPath(name, dir, vars); path != "" {
			return path
		}
	}
	return ""
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// lookPath finds a program as the system would: name itself where it has a slash, else in PATH.
func lookPath(name, dir string, vars variables) string {
	if strings.ContainsRune(name, filepath.Separator) || filepath.IsAbs(name) {
		if p := process.Within(dir, name); executable(p) {
			return p
		}
		return ""
	}
	for _, d := range filepath.SplitList(vars["PATH"]) {
		if d == "" {
			d = "."
		}
		for _, suffix := range suffixes() {
			if p := filepath.Join(process.Within(dir, d), name+suffix); executable(p) {
				return p
			}
		}
	}
	return ""
}

func suffixes() []string {
	if runtime.GOOS == "windows" {
		return []string{".exe", ".cmd", ".bat", ""}
	}
	return []string{""}
}

func executable(name string) bool {
	i, err := os.Stat(name)
	return err == nil && i.Mode().IsRegular() && (runtime.GOOS == "windows" || i.Mode().Perm()&0o111 != 0)
}

// shebang is the Python in the first line of a script, "" where that is another program.
func shebang(name, dir string, vars variables) string {
	b, ok := readBounded(name, 512)
	if !ok || !strings.HasPrefix(string(b), "#!") {
		return ""
	}
	line, rest, _ := strings.Cut(string(b[2:]), "\n")
	f := strings.Fields(line)
	if len(f) == 0 {
		return ""
	}
	switch base := baseName(f[0]); {
	case isPython(base):
		return lookPath(f[0], dir, vars)
	case base == "env":
		if len(f) > 1 && f[1] == "-S" { // the kernel gives env all behind it as one word
			f = append(f[:1], f[2:]...)
		}
		p := findProgram(f)
		if p.python != "" {
			return lookPath(p.python, dir, vars)
		}
	case base == "sh":
		// pip writes so where the path is too long for the kernel: a shell's line that is a
		// string to Python: '''exec' /path/python "$0" "$@"
		next, _, _ := strings.Cut(rest, "\n")
		if rest, ok := strings.CutPrefix(next, "'''exec' "); ok {
			path, _, _ := strings.Cut(strings.Trim(rest, `"`), ` "$0"`)
			path = strings.Trim(path, `"`)
			if isPython(baseName(path)) {
				return lookPath(path, dir, vars)
			}
		}
	}
	return ""
}

// A pythonInstallation is where an interpreter has its packages.
type pythonInstallation struct {
	version string
	folders []string // the ones that are searched first stand first
}

// installation finds the folders of packages of the interpreter at path: of its virtual
// environment (PEP 405) and, where that includes them or there is none, of its prefix, with
// those of Debian and of the user (site, "Site-specific configuration hook").
func installation(path string, vars variables) pythonInstallation {
	var in pythonInstallation
	path = unshim(path, vars)
	prefix := filepath.Dir(filepath.Dir(path))
	if cfg, ok := pyvenv(path); ok {
		in.version = cfg["version_info"]
		if in.version == "" {
			in.version = cfg["version"]
		}
		in.add(prefix, in.version)
		if !strings.EqualFold(cfg["include-system-site-packages"], "true") {
			in.fromName(path)
			return in
		}
		if home := cfg["home"]; home != "" {
			real := filepath.Join(home, "python3")
			if r, err := filepath.EvalSymlinks(real); err == nil {
				real = r
			}
			prefix = filepath.Dir(filepath.Dir(real))
		}
	} else if real, err := filepath.EvalSymlinks(path); err == nil {
		in.fromName(real)
		prefix = filepath.Dir(filepath.Dir(real))
	}
	in.fromName(path)
	if vars["PYTHONNOUSERSITE"] == "" {
		if base := vars["PYTHONUSERBASE"]; base != "" {
			in.add(base, in.version)
		} else if home := vars["HOME"]; home != "" && runtime.GOOS != "windows" {
			in.add(filepath.Join(home, ".local"), in.version)
		}
	}
	for _, p := range []string{filepath.Join(prefix, "local"), prefix} {
		in.add(p, in.version)
	}
	return in
}

// pyvenv reads the settings of the virtual environment that the interpreter belongs to.
func pyvenv(path string) (map[string]string, bool) {
	for _, dir := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} {
		b, ok := readBounded(filepath.Join(dir, "pyvenv.cfg"), 64<<10)
		if !ok {
			continue
		}
		out := map[string]string{}
		for line := range strings.Lines(string(b)) {
			if name, v, ok := strings.Cut(line, "="); ok {
				out[strings.ToLower(strings.TrimSpace(name))] = bounded(oneLine(v), maxValue)
			}
		}
		return out, true
	}
	return nil, false
}

// unshim is the interpreter behind one of pyenv's, which are shell scripts in a folder shims.
func unshim(path string, vars variables) string {
	root := filepath.Dir(filepath.Dir(path))
	if filepath.Base(filepath.Dir(path)) != "shims" {
		return path
	}
	version := vars["PYENV_VERSION"]
	if version == "" {
		version, _ = readShort(filepath.Join(root, "version"))
	}
	version, _, _ = strings.Cut(version, ":")
	versions, _ := filepath.Glob(filepath.Join(root, "versions", version+"*"))
	for _, v := range append([]string{filepath.Join(root, "versions", version)}, versions...) {
		if p := filepath.Join(v, "bin", filepath.Base(path)); executable(p) {
			return p
		}
	}
	return path
}

// fromName takes the version from the interpreter's own name, python3.12, where none is known.
func (in *pythonInstallation) fromName(path string) {
	if v := strings.TrimLeft(baseName(path), "abcdefghijklmnopqrstuvwxyz"); in.version == "" && strings.Contains(v, ".") {
		in.version = v
	}
}

// add adds the folders of packages below prefix that belong to version, or that there are.
func (in *pythonInstallation) add(prefix, version string) {
	var found []string
	for _, lib := range [...]string{"lib", "lib64"} {
		dirs, _ := filepath.Glob(filepath.Join(globEscape(prefix), lib, "python*"))
		slices.Sort(dirs)
		for _, d := range dirs {
			v := strings.TrimPrefix(filepath.Base(d), "python")
			if version != "" && v != minor(version) && v != minor(version)+"t" && v != "3" {
				continue
			}
			for _, sub := range [...]string{"site-packages", "dist-packages"} {
				if isFolder(filepath.Join(d, sub)) {
					found = append(found, filepath.Join(d, sub))
					if in.version == "" && v != "3" {
						in.version = v
					}
				}
			}
		}
	}
	if d := filepath.Join(prefix, "Lib", "site-packages"); runtime.GOOS == "windows" && isFolder(d) {
		found = append(found, d)
	}
	for _, d := range found {
		real, err := filepath.EvalSymlinks(d)
		if err == nil && !slices.Contains(in.folders, real) && len(in.folders) < maxFolders {
			in.folders = append(in.folders, real)
		}
	}
}

// minor is 3.12 of 3.12.4.final.0.
func minor(version string) string {
	f := strings.SplitN(version, ".", 3)
	if len(f) < 2 {
		return version
	}
	return f[0] + "." + f[1]
}

func isFolder(name string) bool {
	i, err := os.Stat(name)
	return err == nil && i.IsDir()
}

// globEscape takes the meaning from characters of a path that a pattern would give them.
func globEscape(s string) string {
	if runtime.GOOS == "windows" {
		return s
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// listPackages puts the distributions whose metadata lies in folder into packages, under their
// normal names; one that is there already is found first by Python too. Of two in one folder,
// as an update that failed leaves them, the later in the order of names counts.
func listPackages(ctx context.Context, folder string, packages map[string]string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	here := map[string]string{}
	for {
		if ctx.Err() != nil {
			return errors.New("the time was over before all were listed")
		}
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			if name, version, ok := distribution(n); ok && version > here[name] {
				here[name] = version
			}
		}
		if err != nil {
			break // the end
		}
	}
	for _, name := range slices.Sorted(maps.Keys(here)) {
		if _, have := packages[name]; have {
			continue
		}
		if len(packages) >= maxPackages {
			return fmt.Errorf("more than %d are installed; the rest is left out", maxPackages)
		}
		packages[name] = here[name]
	}
	return nil
}

// distribution reads the name of a folder of metadata: NAME-VERSION.dist-info (PEP 376, PEP
// 427), NAME-VERSION[-pyX.Y].egg-info.
func distribution(folder string) (name, version string, ok bool) {
	stem, dist := strings.CutSuffix(folder, ".dist-info")
	if !dist {
		if stem, ok = strings.CutSuffix(folder, ".egg-info"); !ok {
			return "", "", false
		}
		if i := strings.LastIndex(stem, "-py"); i > 0 {
			stem = stem[:i]
		}
	}
	name, version, ok = strings.Cut(stem, "-")
	if !ok || name == "" || version == "" || name[0] == '~' || len(folder) > 200 {
		return "", "", false // ~ame is what pip leaves of an update that failed
	}
	return normalName(name), oneLine(version), true
}

// normalName is a distribution's name as PEP 503 compares it.
func normalName(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(oneLine(s)), func(r rune) bool { return r == '-' || r == '_' || r == '.' }), "-")
}
