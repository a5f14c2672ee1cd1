package report

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// maxText bounds one text of an incident in every format but JSON, in bytes. The
// engine keeps quotes far shorter; a stored incident may come from elsewhere.
const maxText = 16 << 10

// cleaned returns a deep copy of inc in which no text can steer a terminal or
// reorder what surrounds it. All formats but JSON render this copy, so that no
// writer can forget a field.
func cleaned(inc *incident.Incident) *incident.Incident {
	return copyClean(reflect.ValueOf(inc)).Interface().(*incident.Incident)
}

func copyClean(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(clean(v.String()))
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(copyClean(v.Elem()))
		out.Set(p)
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out.Set(copyClean(v.Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(copyClean(v.Field(i)))
		}
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copyClean(v.Index(i)))
		}
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for _, k := range v.MapKeys() {
			out.SetMapIndex(copyClean(k), copyClean(v.MapIndex(k)))
		}
	default:
		return v
	}
	return out
}

// clean keeps what can be seen: letters, marks, digits, punctuation, symbols,
// blanks and line ends. Control characters, escapes, bidirectional overrides,
// invisible format characters and private code points are dropped; bytes that are
// no UTF-8 become question marks. More than four combining marks in a row are
// dropped as well: they would be drawn over the lines around.
func clean(s string) string {
	if len(s) > maxText {
		n := maxText
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	marks := 0
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			if marks++; marks > 4 {
				return -1
			}
			return r
		}
		marks = 0
		switch {
		case r == '\n':
			return r
		case r == '\t' || unicode.IsSpace(r) && !unicode.IsControl(r):
			return ' '
		case r == utf8.RuneError:
			return '?'
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, evidence.Escapes.ReplaceAllString(strings.ToValidUTF8(s, "?"), ""))
}

// oneLine is s cleaned and on a single line.
func oneLine(s string) string {
	return strings.ReplaceAll(clean(s), "\n", " ")
}

// Clean is s as reports print it: printable, bounded, its line ends kept.
func Clean(s string) string { return clean(s) }

// OneLine is s as reports print it: printable, bounded, on a single line.
func OneLine(s string) string { return oneLine(s) }
