package engine

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/redact"
)

// mask makes every text that v points to fit to be shown and stored: secrets are
// masked and nothing in it acts on a terminal. Texts of the encyclopedia hold
// values of the run, so none is left out.
func mask(v any) {
	rewrite(reflect.ValueOf(v), func(s string) string { return redact.Text(visible(s)) })
}

// visible drops control and direction characters, but for line ends and tabs.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// rewrite replaces every string in v, which can be set. Keys of maps stay.
func rewrite(v reflect.Value, fn func(string) string) {
	switch v.Kind() {
	case reflect.String:
		if s := fn(v.String()); s != v.String() {
			v.SetString(s)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			rewrite(v.Elem(), fn)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rewrite(v.Field(i), fn)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			rewrite(v.Index(i), fn)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(v.MapIndex(k))
			rewrite(x, fn)
			v.SetMapIndex(k, x)
		}
	case reflect.Interface:
		if s, ok := v.Interface().(string); ok {
			v.Set(reflect.ValueOf(fn(s)))
		}
	}
}
