package catalog

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Areas are the folders of entries.
var Areas = []string{"device-memory", "host-memory", "numerics", "distributed", "device", "outside"}

// Stacks are what a fix or edit can be written for.
var Stacks = []string{"any", "pytorch", "hf", "lightning", "deepspeed", "fsdp", "megatron", "torchtitan", "jax", "tensorflow", "vllm", "slurm", "kubernetes", "docker"}

// The closed vocabularies of an entry's other fields.
var (
	weightsFor     = []string{"weak", "strong", "decisive"}
	weightsAgainst = []string{"weak", "strong"}
	scopes         = []string{"code", "config", "environment", "launcher", "host", "device", "data", "vendor", "measure"}
	effects        = []string{"reads", "reversible", "changes"}
	levels         = []string{"beginner", "advanced"}
	langs          = []string{"python", "shell", "yaml", "json", "text"}
	computes       = []string{"", "none", "micro_batch", "eval_batch", "seq_cap", "alloc_conf", "gpu_fraction", "mem_limit", "shm_size", "lr_cut", "bf16", "workers"}
	standings      = []string{"", "possible", "supported", "established"}
)

var idForm = lazyre.New(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// ValidID reports whether id is lower-case words joined by hyphens.
func ValidID(id string) bool { return idForm.MatchString(id) && len(id) <= 80 }

// Lint checks every rule of docs/entry-format.md over the YAML in fsys and
// returns what is wrong, by file and line; nothing when all is well.
func Lint(fsys fs.FS) []Problem {
	k, err := readYAML(fsys)
	if err != nil {
		return []Problem{{File: ".", Text: err.Error()}}
	}
	return lint(k, &Catalog{})
}

// lint checks k, which is to be added to base: references may lead into base,
// ids of base may be replaced, and wordings of base may not take k's samples.
func lint(k *knowledge, base *Catalog) []Problem {
	l := &linter{k: k, base: base, entries: map[string]bool{}, titles: map[string]string{}}
	l.problems = append(l.problems, k.problems...)
	own := map[string]bool{}
	for i := range k.entries {
		own[k.entries[i].entry.ID] = true
		l.entries[k.entries[i].entry.ID] = true
	}
	for _, h := range base.heads {
		l.entries[h.ID] = true
		if !own[h.ID] {
			l.titles[strings.ToLower(h.Title)] = "entry " + h.ID
		}
	}
	seen := map[string]string{}
	for i := range k.entries {
		d := &k.entries[i]
		if first, dup := seen[d.entry.ID]; dup {
			l.add(d.document, d.line("id"), "id %q is already that of %s", d.entry.ID, first)
		} else {
			seen[d.entry.ID] = d.name
		}
		l.lintEntry(d)
	}
	l.tables = base.tables.with(k)
	l.lintCodes()
	l.lintLines()
	slices.SortFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Text, b.Text))
	})
	return slices.Compact(l.problems)
}

type linter struct {
	k        *knowledge
	base     *Catalog
	entries  map[string]bool   // ids of k and base
	titles   map[string]string // title in lower case -> where it is taken
	tables   tables            // of k and base
	problems []Problem
}

func (l *linter) add(d *document, line int, format string, args ...any) {
	l.problems = append(l.problems, Problem{d.name, line, fmt.Sprintf(format, args...)})
}

// one reports whether v is of the vocabulary, and adds a problem if not.
func (l *linter) one(d *document, v string, of []string, at ...any) bool {
	if slices.Contains(of, v) {
		return true
	}
	l.add(d, d.line(at...), "%s %q is not one of %s", fieldName(at), v, strings.Join(slices.DeleteFunc(slices.Clone(of), func(s string) bool { return s == "" }), ", "))
	return false
}

// filled adds a problem for an empty text.
func (l *linter) filled(d *document, v string, at ...any) {
	if strings.TrimSpace(v) == "" {
		l.add(d, d.line(at...), "%s is missing or empty", fieldName(at))
	}
}

// list adds a problem for a list that is too short or has an empty or repeated
// element.
func (l *linter) list(d *document, v []string, least int, at ...any) {
	if len(v) < least {
		l.add(d, d.line(at...), "%s needs at least %d", fieldName(at), least)
	}
	for i, s := range v {
		if strings.TrimSpace(s) == "" {
			l.add(d, d.line(append(slices.Clone(at), i)...), "%s has an empty element", fieldName(at))
		}
		if slices.Contains(v[:i], s) {
			l.add(d, d.line(append(slices.Clone(at), i)...), "%s repeats %q", fieldName(at), s)
		}
	}
}

// fieldName is at as a reader of the file would say it: fix[0].steps[2].do.
func fieldName(at []any) string {
	var b strings.Builder
	for _, s := range at {
		switch s := s.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}
