package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Out is the name that stands for the scratch folder of a trial: {OUT}.
const Out = "OUT"

var errTemplate = errors.New("template")

// Fill puts values in place of {NAME} in every argument. Only names in values are replaced, so
// that JSON, format strings and braces of any other kind stay as they are. What was put in is
// not looked at again.
func Fill(args []string, values map[string]string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = fill(arg, values)
	}
	return out
}

func fill(text string, values map[string]string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		text = text[i:]
		if j := strings.IndexByte(text, '}'); j > 0 {
			if v, ok := values[text[1:j]]; ok {
				b.WriteString(v)
				text = text[j+1:]
				continue
			}
		}
		b.WriteByte('{')
		text = text[1:]
	}
}

// Names returns which of names stand as {NAME} in args, in the order of names.
func Names(args []string, names []string) []string {
	var out []string
	for _, n := range names {
		if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "{"+n+"}") }) {
			out = append(out, n)
		}
	}
	return out
}

// CheckName says what is wrong with the name of something that varies. Names are words, as in a
// shell: they begin with a letter, so that no JSON or format string has one by chance.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: a name is empty", errTemplate)
	}
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%w: %q is no name: letters, digits and _, a letter first", errTemplate, name)
		}
	}
	return nil
}
