package redact

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// What separates the segments of a path: as it is, escaped in JSON and in code, and in addresses.
const separators = `(?:/|\\{1,4}/?|%2[Ff]|%5[Cc])`

var (
	posixPath = lazyre.New(`(^|[\s"'=(\[{,:;<>|@\x60])((?:~[A-Za-z0-9_.-]*|\.{1,2}|\$\{?[A-Z_]+\}?)?/[^\s"'<>|:;,()\[\]{}*?\\\x60]*)`)
	spacePath = lazyre.New(`(["'])((?:~|/(?:home|Users|mnt|data|media|Volumes|scratch))/[^"'\n:<>|\\]*\s[^"'\n:<>|\\]*)(["'])`)
	winPath   = lazyre.New(`(^|[^A-Za-z0-9])([A-Za-z]:(?:\\{1,4}|/|%5[Cc])[^\s"'<>|:;,()\[\]{}*?\x60]*(?: [^\s"'<>|:;,()\[\]{}*?\x60\\/]+[\\/][^\s"'<>|:;,()\[\]{}*?\x60]*)*)`)
	uncPath   = lazyre.New(`(^|[\s"'=(])(\\{2,4}[A-Za-z0-9][\w.-]*(?:\\{1,2}[^\s"'<>|:;,()\\]+)+)`)
	escPath   = lazyre.New(`((?:\\/|%2[Ff])(?:home|Users|root|data|mnt|scratch|work|opt|tmp|lustre|gpfs|nfs|fsx|shared|srv|workspace|projects?)(?:(?:\\/|%2[Ff])[^\s"'<>|:;,()\[\]{}*?\\%\x60&]+)+)`)
	relPath   = lazyre.New(`(^|[\s"'=(\[{,:;<>|@\x60])((?:[\w.+@~-]+/)+[\w.+@~-]+\.[A-Za-z][A-Za-z0-9]{0,11})($|[\s"'=)\]},:;<>|\x60])`)
	frameFile = lazyre.New(`(File \\*["'])([^"'\\\n]+)(\\*["'], line)`)
	segments  = lazyre.New(separators)
)

// paths takes out the segments of paths that say whose or what they are of.
func (n *Names) paths(s string) string {
	if strings.ContainsAny(s, `/\`) || strings.Contains(s, "%2") || strings.Contains(s, "%5") {
		if strings.Contains(s, "File ") {
			s = frameFile.ReplaceAllStringFunc(s, func(m string) string {
				g := frameFile.FindStringSubmatch(m)
				return g[1] + n.path(g[2], false) + g[3]
			})
		}
		if strings.ContainsAny(s, `"'`) {
			s = n.pathsOf(spacePath, s)
		}
		s = n.pathsOf(posixPath, s)
		if strings.Contains(s, `:\`) || strings.Contains(s, ":/") || strings.Contains(s, "%5") {
			s = n.pathsOf(winPath, s)
		}
		if strings.Contains(s, `\\`) {
			s = n.pathsOf(uncPath, s)
		}
		if strings.Contains(s, `\/`) || strings.Contains(s, "%2") {
			s = escPath.ReplaceAllStringFunc(s, func(m string) string { return n.path(m, true) })
		}
		if strings.Contains(s, "/") {
			s = n.pathsOf(relPath, s)
		}
	}
	return s
}

// pathsOf replaces the second group of each match, which is a path.
func (n *Names) pathsOf(re *lazyre.Regexp, s string) string {
	// The sign behind one path may be the one before the next: twice, for those that the first
	// pass stepped over.
	for range 2 {
		was := s
		s = re.ReplaceAllStringFunc(s, func(m string) string {
			g := re.FindStringSubmatch(m)
			if g[1] == ":" && strings.HasPrefix(g[2], "//") {
				return m // the rest of an address on the web
			}
			tail := ""
			if len(g) == 3 {
				tail = urlEnd.FindString(g[2])
				g[2] = g[2][:len(g[2])-len(tail)]
			} else if len(g) > 3 {
				tail = g[3]
			}
			return g[1] + n.path(g[2], false) + tail
		})
		if s == was {
			break
		}
	}
	return s
}

// Forms of segments that stay: numbered things that jobs make, hidden folders of tools, times.
var (
	numbered     = lazyre.New(`^(?:[a-z_]+[-_.]?)?\d+(?:[-_.]\d+)*(?:of\d+)?(?:\.\.\.)?$`)
	stamped      = lazyre.New(`^\d{4}[-_]?\d{2}[-_]?\d{2}(?:[T_-]?\d{2}[-:_]?\d{2}(?:[-:_]?\d{2})?)?$`)
	nativeSource = lazyre.New(`(?i)\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|hip|rs)$`)
	pythonDir    = lazyre.New(`^(?:python|pypy|jython)[0-9.]*$`)
	hidden       = lazyre.New(`^\.(?:cache|local|config|venv|env|git|triton|conda|pyenv|vscode|vscode-server|netv?|nv|ssh|aws|kube|docker|hydra|ipython|jupyter|keras|npm|cargo|rustup|bashrc|profile|zshrc|bash_history|netrc|wandb|neptune|clearml|dvc|aim|mozilla|virtualenvs|nvidia|cupy|paddle|huggingface|torch)$`)
	trialID      = lazyre.New(`^(?:t\d{8}-\d{6}-[0-9a-f]{10}|inq-[0-9a-f]+|[0-9a-f]{40}|[0-9a-f]{64}|run-\d{8}_\d{6}-?|offline-run-\d{8}_\d{6}-?)$`)
	tempName     = lazyre.New(`^(?:tmp[A-Za-z0-9_]{6,10}|pymp-.*|torch_.*|nccl-.*|cuda.*|torchinductor.*|torchelastic_.*|pip-.*|ray|session_.*|orbit-.*|systemd-.*|snap-.*|ipykernel_\d+|slurm.*)$`)
	ownWords     = lazyre.New(`^(?:path|user|host|name|email|address|text)-\d+(?:\.[A-Za-z0-9]+)*$`)
	recordFile   = lazyre.New(`^events\.out\.tfevents\.\d+\.([^/]+?)(?:\.\d+){0,3}(?:\.v2)?$`)
	masked1      = lazyre.New(`^\[?masked\]?$`)
)

// Path returns a path without the names in it; it may be relative.
func (n *Names) Path(p string) string {
	n.number()
	return n.path(p, !rooted(p))
}

// path takes names out of a path. below says that it is only the lower part of one.
func (n *Names) path(p string, below bool) string {
	if p == "" || p == "/" {
		return p
	}
	at := segments.FindAllStringSubmatchIndex(p, -1)
	var b strings.Builder
	from, index := 0, 0
	mode := ""
	first := !below
	for i := 0; i <= len(at); i++ {
		end, next := len(p), len(p)
		if i < len(at) {
			end, next = at[i][0], at[i][1]
		}
		seg := p[from:end]
		last := i == len(at)
		if seg == "" || seg == "." || seg == ".." || len(seg) == 2 && seg[1] == ':' {
			b.WriteString(p[from:next])
			from = next
			continue
		}
		low := strings.ToLower(seg)
		var out string
		switch {
		case mode == "user":
			out, mode = n.userSegment(seg), ""
		case mode == "public" || mode == "system" && low != "site-packages" && low != "dist-packages":
			out = seg
			if mode == "system" && recordFile.MatchString(seg) {
				out = n.segment(seg, last)
			}
		case mode == "packages":
			if bare, _, _ := strings.Cut(low, "."); libraries.has(bare) || libraries.has(strings.SplitN(low, "-", 2)[0]) {
				out, mode = seg, "public"
			} else {
				out, mode = n.segment(seg, last), ""
			}
		case low == "site-packages" || low == "dist-packages":
			out, mode = seg, "packages"
		case strings.HasPrefix(seg, "~") && index == 0:
			out = "~" + n.user(seg[1:])
		case index == 0 && strings.HasPrefix(seg, "$"):
			out = seg
		case index == 0 && first && rooted(p):
			switch {
			case (low == "home" || low == "users") && !last || low == "homes" && !last:
				out, mode = seg, "user"
			case systemRoots.has(low):
				out, mode = seg, "system"
			case roots.has(low) || numbered.MatchString(low) && roots.has(strings.TrimRight(low, "0123456789-_")):
				out = seg
			default:
				out = n.segment(seg, last)
			}
		case libraries.has(low) && !last && nativeSource.MatchString(p):
			// A message of a library names the source that it was built from.
			out, mode = seg, "public"
		case (low == "home" || low == "users") && index <= 3 && !last:
			out, mode = seg, "user"
		case pythonDir.MatchString(low) && b.Len() > 0 && strings.HasSuffix(strings.TrimRight(strings.ToLower(b.String()), `/\`), "lib"):
			out, mode = seg, "system"
		case low == "cgroup" || low == "spool" && index <= 2:
			out, mode = seg, "system"
		default:
			out = n.segment(seg, last)
		}
		b.WriteString(out)
		b.WriteString(p[end:next])
		from = next
		index++
	}
	return b.String()
}

// rooted reports whether a path begins at the top of a file system.
func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\`) || strings.HasPrefix(p, "%2") || len(p) > 1 && p[1] == ':'
}

// userSegment is the segment behind the folder of homes.
func (n *Names) userSegment(seg string) string {
	if ordinary(seg) && !people.has(strings.ToLower(seg)) && len(seg) > 3 {
		if n.learning {
			n.put(User, seg)
			return seg
		}
		return n.token(User, seg)
	}
	return n.user(seg)
}

// segment is one segment of a path; file says that it is the last one.
func (n *Names) segment(seg string, file bool) string {
	low := strings.ToLower(seg)
	switch {
	case ownWords.MatchString(low) || masked1.MatchString(low) || low == mask || seg == "...":
		return seg
	case ordinary(seg) || stamped.MatchString(low) || hidden.MatchString(low) || trialID.MatchString(low) || tempName.MatchString(seg):
		return seg
	case numbered.MatchString(low) && ordinary(strings.TrimRight(low, "0123456789-_.")):
		return seg
	case strings.HasPrefix(seg, "$") || strings.HasPrefix(seg, "{") || strings.HasPrefix(seg, "<"):
		return seg
	}
	if g := recordFile.FindStringSubmatch(seg); g != nil {
		return strings.Replace(seg, g[1], n.hostToken(g[1]), 1)
	}
	stem, ext := seg, ""
	for range 3 {
		dot := strings.LastIndexByte(stem, '.')
		if dot <= 0 || !extensions.has(strings.ToLower(stem[dot+1:])) && !numeric(stem[dot+1:]) {
			break
		}
		stem, ext = stem[:dot], stem[dot:]+ext
	}
	if ext != "" && (ordinary(stem) || numbered.MatchString(strings.ToLower(stem)) && ordinary(strings.TrimRight(strings.ToLower(stem), "0123456789-_.")) || stamped.MatchString(stem)) {
		return seg
	}
	if i := strings.IndexByte(stem, '='); i > 0 { // a partition, or the overrides of a run
		return stem[:i+1] + n.segment(stem[i+1:], false) + ext
	}
	if n.learning {
		n.part(stem)
		return seg
	}
	// A user or host as part of it keeps its own token.
	if t, ok := n.known(stem); ok {
		return t + ext
	}
	return n.token(Path, stem) + ext
}

// part learns one segment of a path.
func (n *Names) part(stem string) {
	low := strings.ToLower(stem)
	if _, ok := n.words[low]; ok {
		return
	}
	n.put(Path, stem)
}

// known is the token of a name that is looked for in running text.
func (n *Names) known(word string) (string, bool) {
	key, ok := n.words[strings.ToLower(word)]
	if !ok {
		return "", false
	}
	n.took(key)
	return n.tokens[key], true
}
