// Package lazyre holds regular expressions that are compiled at their first use. The program
// has some three hundred of them and most of its invocations need few: compiled at start, they
// took longer than the start of a command that `inquest run` wraps may be delayed. The idea is
// that of internal/lazyregexp in the Go tree.
package lazyre

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression in RE2 syntax, compiled at its first use. Its methods are
// those of regexp.Regexp, and may be called concurrently.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// all are the expressions made so far, so that a test can compile each.
var all []*Regexp

// New returns the expression. One that does not compile panics at its first use; New is for
// variables of packages, all of which TestCompile of the command line compiles.
func New(expr string) *Regexp {
	r := &Regexp{expr: expr}
	all = append(all, r)
	return r
}

// CompileAll compiles every expression made by New.
func CompileAll() int {
	for _, r := range all {
		r.get()
	}
	return len(all)
}

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.expr) })
	return r.re
}

func (r *Regexp) String() string                         { return r.expr }
func (r *Regexp) Match(b []byte) bool                    { return r.get().Match(b) }
func (r *Regexp) MatchString(s string) bool              { return r.get().MatchString(s) }
func (r *Regexp) Find(b []byte) []byte                   { return r.get().Find(b) }
func (r *Regexp) FindString(s string) string             { return r.get().FindString(s) }
func (r *Regexp) FindStringIndex(s string) []int         { return r.get().FindStringIndex(s) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte         { return r.get().FindSubmatch(b) }
func (r *Regexp) FindStringSubmatch(s string) []string   { return r.get().FindStringSubmatch(s) }
func (r *Regexp) FindStringSubmatchIndex(s string) []int { return r.get().FindStringSubmatchIndex(s) }
func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}
func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte { return r.get().FindAllSubmatch(b, n) }
func (r *Regexp) ReplaceAll(src, repl []byte) []byte         { return r.get().ReplaceAll(src, repl) }
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.get().ReplaceAllString(src, repl)
}
func (r *Regexp) ReplaceAllLiteralString(src, repl string) string {
	return r.get().ReplaceAllLiteralString(src, repl)
}
func (r *Regexp) ReplaceAllStringFunc(src string, repl func(string) string) string {
	return r.get().ReplaceAllStringFunc(src, repl)
}
func (r *Regexp) Split(s string, n int) []string { return r.get().Split(s, n) }
func (r *Regexp) SubexpNames() []string          { return r.get().SubexpNames() }
func (r *Regexp) SubexpIndex(name string) int    { return r.get().SubexpIndex(name) }
