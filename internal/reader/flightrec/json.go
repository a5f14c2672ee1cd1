package flightrec

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// A jsonError is why and where JSON could not be read.
type jsonError struct {
	offset int64
	err    error
}

func (e *jsonError) Error() string {
	return fmt.Sprintf("JSON at offset %d: %v", e.offset, e.err)
}
func (e *jsonError) Unwrap() error { return e.err }

// maxNesting bounds the nesting of JSON; a dump nests five deep.
const maxNesting = 32

// readJSON reads one JSON value in the form of the pickle's values. With an error
// the value is what had been read by then.
func readJSON(r *bufio.Reader) (*pickle.Value, error) {
	skipped := int64(0)
	if b, _ := r.Peek(3); bytes.Equal(b, []byte("\xef\xbb\xbf")) {
		n, _ := r.Discard(3)
		skipped = int64(n)
	}
	j := &jsonValues{dec: json.NewDecoder(r), skipped: skipped, left: maxNodes}
	j.dec.UseNumber()
	v, err := j.value(0)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return v, &jsonError{j.at(), err}
	}
	return v, nil
}

type jsonValues struct {
	dec     *json.Decoder
	skipped int64
	left    int
}

func (j *jsonValues) at() int64 { return j.skipped + j.dec.InputOffset() }

func (j *jsonValues) value(depth int) (*pickle.Value, error) {
	t, err := j.dec.Token()
	if err != nil {
		return nil, err
	}
	if j.left--; j.left < 0 {
		return nil, fmt.Errorf("more than %d values", maxNodes)
	}
	v := &pickle.Value{Offset: j.at(), End: j.at()}
	switch t := t.(type) {
	case json.Delim:
		v.Offset--
		if depth >= maxNesting {
			return nil, fmt.Errorf("nested deeper than %d", maxNesting)
		}
		err := j.items(v, t == '{', depth)
		v.End = j.at()
		return v, err
	case string:
		v.Kind, v.Text = pickle.KindString, t
	case bool:
		v.Kind = pickle.KindBool
		if t {
			v.Int = 1
		}
	case json.Number:
		number(v, t.String())
	}
	return v, nil
}

func number(v *pickle.Value, s string) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		v.Kind, v.Int = pickle.KindInt, n
		return
	}
	f, _ := strconv.ParseFloat(s, 64) // out of range is an infinity
	v.Kind, v.Int = pickle.KindFloat, int64(math.Float64bits(f))
}

// items reads the content of an object or array and its end. What was read before
// an error stays.
func (j *jsonValues) items(v *pickle.Value, object bool, depth int) error {
	v.Kind = pickle.KindList
	if object {
		v.Kind = pickle.KindDict
	}
	for j.dec.More() {
		x, err := j.value(depth + 1)
		switch {
		case x == nil || err != nil && object && len(v.Items)%2 == 0:
			return j.odd(v, object, err)
		case err != nil:
			v.Items = append(v.Items, x)
			return err
		}
		v.Items = append(v.Items, x)
	}
	_, err := j.dec.Token()
	return j.odd(v, object, err)
}

// odd drops a key whose value is gone.
func (j *jsonValues) odd(v *pickle.Value, object bool, err error) error {
	if object && len(v.Items)%2 != 0 {
		v.Items = v.Items[:len(v.Items)-1]
	}
	return err
}
