package kube

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

func text(s string) evidence.Value { return evidence.TextOf(textline.Cut(textline.Clean(s), maxText)) }

func set(attrs evidence.Attrs, name, v string) {
	if v = textline.Cut(textline.Clean(v), maxText); v != "" {
		attrs[name] = evidence.TextOf(v)
	}
}

func setInt(attrs evidence.Attrs, name, v string) {
	if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
		attrs[name] = evidence.IntOf(n)
	}
}

// quantities are the suffixes of a resource.Quantity (apimachinery/pkg/api/resource).
var quantities = map[string]float64{"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50}

// bytesOf reads a quantity of memory: 100Mi, 1.5Gi, 64G, 128974848, 129e6.
func bytesOf(s string) (evidence.Value, bool) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	if i == 0 || i > 20 {
		return evidence.Value{}, false
	}
	scale, known := quantities[s[i:]]
	if exp, ok := strings.CutPrefix(strings.ToLower(s[i:]), "e"); ok && !known {
		n, err := strconv.Atoi(exp)
		if err != nil || n < 0 || n > 18 {
			return evidence.Value{}, false
		}
		scale, known = math.Pow(10, float64(n)), true
	}
	f, err := strconv.ParseFloat(s[:i], 64)
	if err != nil || !known || f*scale > math.MaxInt64/4 {
		return evidence.Value{}, false
	}
	return evidence.SizeOf(int64(f*scale), int64(f*scale)), true
}

// when reads metav1.Time and MicroTime (RFC 3339 with zone) and the RFC 1123 form
// of kubectl describe.
func when(s string) evidence.Stamp {
	s = strings.TrimSpace(s)
	if len(s) > 40 {
		return evidence.Stamp{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.RFC1123Z} {
		t, err := time.Parse(layout, s)
		if err != nil || t.Year() < 2000 || t.Year() > 2200 {
			continue
		}
		st := evidence.Stamp{Time: t.UTC(), Written: s, Zone: t.Format("Z07:00"), Error: time.Second / 2, Clock: "wall"}
		if strings.Contains(s, ".") {
			st.Error = time.Microsecond / 2
		}
		return st
	}
	return evidence.Stamp{}
}
