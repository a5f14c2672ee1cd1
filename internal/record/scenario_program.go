package record

import (
	"path/filepath"
	"strings"
)

// A program is what a command line runs in the end, behind interpreters, launchers and other
// wrappers. One of path, module, code and name says it.
type program struct {
	path   string // of a script, as written
	module string // of python -m
	code   string // of -c
	name   string // of an installed program, with its sub-command where it has one
	// words are the command line from the program on: argv as the last wrapper would give it to
	// the system, so that words[0] is an interpreter or the program itself.
	words []string
	// python is the interpreter that runs it as written, "" where none is named.
	python string
	// launchers are the names of the launchers on the way, outermost first.
	launchers []string
}

// findProgram follows a command line to its program.
func findProgram(argv []string) program {
	p := program{words: argv}
	for range 16 { // wrappers within wrappers
		if len(p.words) == 0 {
			return p
		}
		if next, ok := p.step(); ok {
			p.words = next
			continue
		}
		break
	}
	return p
}

// step takes the outermost wrapper away and returns what it runs; false where words[0] is no
// wrapper, or the program is found.
func (p *program) step() ([]string, bool) {
	w := p.words
	name := baseName(w[0])
	switch {
	case isAssignment(w[0]):
		if len(w) > 1 {
			return w[1:], true
		}
	case isPython(name):
		p.python = w[0]
		return p.interpreter(w)
	case isShell(name):
		return p.shell(w)
	}
	x, ok := wrappers()[name]
	if ok && x.sub != "" {
		// The wrapper is one of several commands of its program.
		rest := skipOptions(w[1:], x.takes)
		if len(rest) == 0 || !has(x.sub, rest[0]) {
			ok = false
		} else {
			w = rest
		}
	}
	if !ok {
		p.plain(p.words)
		return nil, false
	}
	if x.launcher {
		p.launchers = append(p.launchers, name)
	}
	rest, module := x.skip(w[1:])
	if module {
		return p.asModule(rest)
	}
	if len(rest) == 0 {
		p.plain(p.words)
		return nil, false
	}
	if x.script && !flagged(w[1:len(w)-len(rest)], x.binary) {
		// What follows is a script for Python, or an executable one.
		p.path = rest[0]
		if p.python == "" {
			p.python = "python"
		}
		p.words = rest
		return nil, false
	}
	return rest, true
}

// interpreter follows python [options] [-m module | -c code | script] (Python's "Command line
// and environment").
func (p *program) interpreter(w []string) ([]string, bool) {
	for i := 1; i < len(w); i++ {
		a := w[i]
		switch {
		case a == "-" || a == "":
			p.name = "python -"
			return nil, false
		case strings.HasPrefix(a, "--"):
			if a == "--check-hash-based-pycs" {
				i++
			}
		case a[0] == '-':
			// Letters may stand together; the last may have its value behind it or next.
			for j := 1; j < len(a); j++ {
				rest := a[j+1:]
				switch a[j] {
				case 'm', 'c':
					if rest == "" {
						if i+1 >= len(w) {
							return nil, false
						}
						i++
						rest = w[i]
					}
					if a[j] == 'c' {
						p.name, p.code, p.words = "python", rest, w[i:]
						return nil, false
					}
					return p.asModule(append([]string{rest}, w[i+1:]...))
				case 'W', 'X':
					if rest == "" {
						i++
					}
				default:
					continue
				}
				break
			}
		default:
			p.path, p.words = a, w[i:]
			return nil, false
		}
	}
	p.name, p.words = "python", w[:1]
	return nil, false
}

// asModule is python -m w[0]: some modules are launchers themselves.
func (p *program) asModule(w []string) ([]string, bool) {
	if len(w) == 0 {
		return nil, false
	}
	if as, ok := moduleWrappers()[w[0]]; ok {
		words := append(strings.Fields(as), w[1:]...)
		if p.python == "" {
			p.python = "python"
		}
		return words, true
	}
	p.module, p.words = w[0], w
	if p.python == "" {
		p.python = "python"
	}
	return nil, false
}

// shell follows sh [options] script, and sh -c text to the last command of the text.
func (p *program) shell(w []string) ([]string, bool) {
	name := baseName(w[0])
	for i := 1; i < len(w); i++ {
		a := w[i]
		switch {
		case a == "--":
			continue
		case strings.HasPrefix(a, "--"):
			if a == "--rcfile" || a == "--init-file" {
				i++
			}
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			if a[0] == '-' && strings.Contains(a, "c") && !strings.Contains(a, "o") {
				for i++; i < len(w); i++ {
					if len(w[i]) > 0 && w[i][0] != '-' {
						break
					}
				}
				if i >= len(w) {
					break
				}
				if last := lastCommand(w[i]); len(last) > 0 {
					return last, true
				}
				p.name, p.code = name, w[i]
				return nil, false
			}
			if strings.HasSuffix(a, "o") || strings.HasSuffix(a, "O") {
				i++
			}
		default:
			p.path, p.words = a, w[i:]
			return nil, false
		}
	}
	p.name = name
	return nil, false
}

// plain names a program that is no wrapper.
func (p *program) plain(w []string) {
	if strings.ContainsAny(w[0], `/\`) && !isInstalled(w[0]) || isScript(w[0]) {
		p.path = w[0]
		return
	}
	name := baseName(w[0])
	p.name = name
	if subs, ok := commanders()[name]; ok {
		n := 0
		for _, a := range w[1:] {
			if n == subs || a == "" || a[0] == '-' {
				break
			}
			p.name += " " + a
			n++
		}
	}
}

// isInstalled reports whether a path is of a program in a folder of programs: its folder says
// nothing of what it is.
func isInstalled(name string) bool {
	dir := filepath.Base(filepath.Dir(name))
	return filepath.IsAbs(name) && (dir == "bin" || dir == "sbin" || dir == "Scripts" || dir == "shims")
}

func baseName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".EXE")
}

// isPython reports whether name is an interpreter: python, python3, python3.12, pypy3, and
// accelerated ones.
func isPython(name string) bool {
	for _, p := range [...]string{"python", "pypy", "pythonw", "ipython"} {
		if rest, ok := strings.CutPrefix(name, p); ok && strings.Trim(rest, "0123456789.t") == "" {
			return true
		}
	}
	return false
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "busybox":
		return true
	}
	return false
}

func isScript(name string) bool {
	for _, e := range [...]string{".py", ".sh", ".bash", ".pyc", ".pex", ".pyz"} {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}

// isAssignment reports whether a word is NAME=value.
func isAssignment(a string) bool {
	name, _, ok := strings.Cut(a, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// flagged reports whether one of the options that say that a program is no script is among
// words.
func flagged(words []string, binary string) bool {
	for _, w := range words {
		if binary != "" && has(binary, strings.ReplaceAll(w, "_", "-")) {
			return true
		}
	}
	return false
}

// lastCommand is the last command of a shell's text that runs something, in words; nil where
// the text is more than a list of simple commands. What only sets the stage (cd, ulimit, export,
// source) does not count, nor what only waits or shows.
func lastCommand(text string) []string {
	var last, words []string
	word, in := strings.Builder{}, false
	end := func() {
		if in {
			words = append(words, word.String())
			word.Reset()
			in = false
		}
	}
	done := func() bool {
		end()
		for len(words) > 0 && (words[0] == "exec" || words[0] == "command") {
			words = words[1:]
		}
		if len(words) > 0 {
			switch words[0] {
			case "if", "for", "while", "until", "case", "{", "(", "function", "[[", "do", "then", "fi", "done":
				return false
			case "cd", "ulimit", "export", "source", ".", "set", "unset", "umask", "module", "echo", "printf", "wait", "true", ":", "sleep", "exit", "trap", "mkdir", "conda", "pip", "ml", "date", "hostname", "nvidia-smi":
				if (words[0] == "conda" || words[0] == "pip") && len(words) > 1 && words[1] == "run" {
					last = words
				}
			default:
				last = words
			}
		}
		words = nil
		return true
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t':
			end()
		case '\n', ';', '&', '|':
			if c == '|' && i+1 < len(text) && text[i+1] != '|' {
				// Of a pipe the first command counts: the rest shows or keeps its output.
				if !done() {
					return nil
				}
				for i < len(text) && text[i] != ';' && text[i] != '\n' && !strings.HasPrefix(text[i:], "&&") {
					i++
				}
				continue
			}
			if c == '&' && (i > 0 && text[i-1] == '>' || i+1 < len(text) && text[i+1] == '>') {
				word.WriteByte(c) // 2>&1 or &>file
				in = true
				continue
			}
			if !done() {
				return nil
			}
		case '#':
			if !in {
				for i+1 < len(text) && text[i+1] != '\n' {
					i++
				}
				continue
			}
			word.WriteByte(c)
		case '\\':
			if i++; i < len(text) && text[i] != '\n' {
				word.WriteByte(text[i])
				in = true
			}
		case '\'', '"':
			in = true
			for i++; i < len(text) && text[i] != c; i++ {
				if c == '"' && text[i] == '\\' && i+1 < len(text) {
					i++
				}
				word.WriteByte(text[i])
			}
		case '`', '(', ')':
			return nil
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if !done() {
		return nil
	}
	return withoutRedirections(last)
}

// withoutRedirections takes > file, 2>&1 and their like out of words.
func withoutRedirections(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		w := strings.TrimLeft(words[i], "0123456789&")
		if w == ">" || w == ">>" || w == "<" {
			i++
			continue
		}
		if w != "" && (w[0] == '>' || w[0] == '<') {
			continue
		}
		out = append(out, words[i])
	}
	return out
}
