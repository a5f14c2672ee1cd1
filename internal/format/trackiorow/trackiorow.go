// Package trackiorow decodes what a row of a Trackio database holds beside plain columns: the JSON of
// its metrics and its timestamp (trackio/utils.py serialize_values and deserialize_values, 0.1 to 0.43).
package trackiorow

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

var errObject = errors.New("no JSON object")

// A Scalar is one metric of a row. From and End are the byte range of key and value, At is
// where the value begins.
type Scalar struct {
	Key           string
	Value         float64
	From, At, End int
}

// Scalars returns the metrics of a row in order. At the top level of the object numbers
// are metrics, and the texts "NaN", "Infinity" and "-Infinity", which stand for what is not finite; other
// texts, truth values and collections are none. A row that is not wholly an object has no
// metrics.
func Scalars(body []byte) ([]Scalar, error) {
	n, err := Object(body)
	if err != nil {
		return nil, err
	}
	var list []Scalar
	for _, x := range n.Items {
		s := Scalar{Key: x.Key, From: x.From, At: x.At, End: x.End}
		switch x.Sort {
		case jsontree.Number:
			v, err := strconv.ParseFloat(x.Text, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				continue
			}
			s.Value = v
		case jsontree.String:
			switch x.Text {
			case "NaN":
				s.Value = math.NaN()
			case "Infinity":
				s.Value = math.Inf(1)
			case "-Infinity":
				s.Value = math.Inf(-1)
			default:
				continue
			}
		default:
			continue
		}
		list = append(list, s)
	}
	return list, nil
}

// Object reads the JSON object of a row.
func Object(body []byte) (*jsontree.Node, error) {
	n, _, err := jsontree.Parse(body, 0, nil)
	if err == nil && n.Sort != jsontree.Object {
		err = errObject
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Time is a timestamp in seconds since 1970, 0 where it is none. One without an offset is in
// UTC.
func Time(text string) float64 {
	for _, layout := range [...]string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9
		}
	}
	return 0
}

// FormatTime is a time as Trackio writes it.
func FormatTime(wall float64) string {
	whole, frac := math.Modf(wall)
	return time.Unix(int64(whole), int64(math.Round(frac*1e6))*1e3).UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

// RunID is what a run is called: its id, in versions without one its name; on one line and
// bounded.
func RunID(id, name string) string {
	if id == "" {
		id = name
	}
	return textline.OneLine(id, 512)
}

// Quote is a text as JSON.
func Quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(b)
}
