package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// The compiled files are plain text in the order of the Go types, one value to
// a line, which diffs well and decodes thirty times faster than JSON: texts
// share the bytes of the file.
//
//	text          itself, each newline written as ␊
//	int, bool     decimal
//	list          its length, then the elements
//	map of texts  its length, then key and value by key
//	struct        its fields in order, of a Step those before Runs, which only tests read from there on
//
// A change of the types changes the format; the files are generated with the
// program that reads them, and a test compares them.
const newlineMark = "␊"

// pack writes v, a value or a pointer to one of the kinds above.
func pack(v any) ([]byte, error) {
	var b []byte
	b, err := packValue(b, reflect.Indirect(reflect.ValueOf(v)))
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b, nil
}

func packValue(b []byte, v reflect.Value) ([]byte, error) {
	var err error
	switch v.Kind() {
	case reflect.String:
		return packText(b, v.String())
	case reflect.Int:
		return append(strconv.AppendInt(b, v.Int(), 10), '\n'), nil
	case reflect.Bool:
		n := byte('0')
		if v.Bool() {
			n = '1'
		}
		return append(b, n, '\n'), nil
	case reflect.Slice:
		b = append(strconv.AppendInt(b, int64(v.Len()), 10), '\n')
		for i := range v.Len() {
			if b, err = packValue(b, v.Index(i)); err != nil {
				return nil, err
			}
		}
		return b, nil
	case reflect.Map:
		m, ok := v.Interface().(map[string]string)
		if !ok {
			return nil, fmt.Errorf("no form for %s", v.Type())
		}
		b = append(strconv.AppendInt(b, int64(len(m)), 10), '\n')
		for _, k := range sortedKeys(m) {
			if b, err = packText(b, k); err != nil {
				return nil, err
			}
			if b, err = packText(b, m[k]); err != nil {
				return nil, err
			}
		}
		return b, nil
	case reflect.Struct:
		for i := range packedFields(v.Type()) {
			if b, err = packValue(b, v.Field(i)); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	return nil, fmt.Errorf("no form for %s", v.Type())
}

// packedFields is how many of the fields of t are in the compiled form: those before
// the first that only tests read.
func packedFields(t reflect.Type) int {
	if t != stepType {
		return t.NumField()
	}
	return stepFields()
}

var (
	stepType   = reflect.TypeFor[Step]()
	stepFields = sync.OnceValue(func() int {
		f, _ := stepType.FieldByName("Runs")
		return f.Index[0]
	})
)

func packText(b []byte, s string) ([]byte, error) {
	if strings.Contains(s, newlineMark) {
		return nil, fmt.Errorf("text %q holds %s, which stands for a newline", clip(s), newlineMark)
	}
	return append(append(b, strings.ReplaceAll(s, "\n", newlineMark)...), '\n'), nil
}

// unpack reads what pack wrote of the same type into v, a pointer.
func unpack(data string, v any) error {
	u := unpacker{rest: data}
	u.value(reflect.ValueOf(v).Elem())
	if u.err == nil && u.rest != "" {
		u.err = errors.New("text after the end")
	}
	return u.err
}

type unpacker struct {
	rest string
	err  error
}

func (u *unpacker) line() string {
	l, rest, ok := strings.Cut(u.rest, "\n")
	if !ok && u.err == nil {
		u.err = errors.New("ends early")
	}
	u.rest = rest
	return l
}

func (u *unpacker) text() string {
	l := u.line()
	if strings.Contains(l, newlineMark) {
		l = strings.ReplaceAll(l, newlineMark, "\n")
	}
	return l
}

func (u *unpacker) number() int {
	n, err := strconv.Atoi(u.line())
	if err != nil && u.err == nil {
		u.err = errors.New("want a number")
	}
	return n
}

// length reads the number of things that take at least two bytes each.
func (u *unpacker) length() int {
	n := u.number()
	if n < 0 || n > len(u.rest) {
		if u.err == nil {
			u.err = errors.New("length is past the end")
		}
		return 0
	}
	return n
}

func (u *unpacker) value(v reflect.Value) {
	if u.err != nil {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(u.text())
	case reflect.Int:
		v.SetInt(int64(u.number()))
	case reflect.Bool:
		v.SetBool(u.line() == "1")
	case reflect.Slice:
		n := u.length()
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			u.value(v.Index(i))
		}
	case reflect.Map:
		n := u.length()
		if n == 0 {
			return
		}
		m := make(map[string]string, min(n, 64))
		for range n {
			if u.err != nil {
				return
			}
			k := u.text()
			m[k] = u.text()
		}
		v.Set(reflect.ValueOf(m))
	case reflect.Struct:
		for i := range packedFields(v.Type()) {
			u.value(v.Field(i))
		}
	default:
		u.err = fmt.Errorf("no form for %s", v.Type())
	}
}
