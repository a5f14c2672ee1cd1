package reader

import (
	"math"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// ParseValue reads what a log or configuration prints as a value of type t.
func ParseValue(text string, t evidence.Type) (evidence.Value, bool) {
	text = strings.TrimSpace(text)
	switch t {
	case evidence.Text:
		return evidence.TextOf(textline.Cut(text, 1024)), text != ""
	case evidence.Int:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 0, 64)
		if err != nil {
			if n, err = strconv.ParseInt(strings.TrimLeft(strings.ReplaceAll(text, ",", ""), "0"), 10, 64); err != nil {
				return evidence.Value{}, false
			}
		}
		return evidence.IntOf(n), true
	case evidence.Float:
		f, err := strconv.ParseFloat(strings.TrimSuffix(strings.ReplaceAll(text, ",", ""), "%"), 64)
		return evidence.FloatOf(f), err == nil
	case evidence.Bool:
		switch strings.ToLower(text) {
		case "true", "yes", "1", "on":
			return evidence.BoolOf(true), true
		case "false", "no", "0", "off", "none", "null":
			return evidence.BoolOf(false), true
		}
		return evidence.Value{}, false
	case evidence.Size:
		return ParseSize(text)
	case evidence.Ints:
		var l []int64
		for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '[' || r == ']' }) {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil || len(l) >= 4096 {
				return evidence.Value{}, false
			}
			l = append(l, n)
		}
		return evidence.IntsOf(l), len(l) > 0
	}
	return evidence.Value{}, false
}

// units are the names of sizes with their power of 1024. Decimal names stand for
// binary units too: the programs that print them divide by 1024, and
// so does the kernel with its kB.
var sizeUnits = map[string]int{
	"b": 0, "byte": 0, "bytes": 0, "": 0,
	"k": 1, "kb": 1, "kib": 1, "m": 2, "mb": 2, "mib": 2, "g": 3, "gb": 3, "gib": 3, "t": 4, "tb": 4, "tib": 4, "p": 5, "pb": 5, "pib": 5,
}

// ParseSize reads "79.15 GiB", "1,024 kB", "20027 bytes" or "33762398024" as the
// interval of byte counts that print so: half a unit of the last digit to both
// sides. What PyTorch prints for "not available" (2^64-1 bytes) is no size.
func ParseSize(s string) (evidence.Value, bool) {
	i := 0
	for i < len(s) && (isDigit(s[i]) || s[i] == '.' || s[i] == ',') {
		i++
	}
	exp := 0
	if i > 0 && i+1 < len(s) && (s[i] == 'e' || s[i] == 'E') { // 1.5e+10
		j := i + 1
		if s[j] == '+' || s[j] == '-' {
			j++
		}
		k := j
		for k < len(s) && k < j+3 && isDigit(s[k]) {
			k++
		}
		if k > j && k == len(s) {
			exp, _ = strconv.Atoi(s[i+1 : k])
			s = s[:i]
		}
	}
	num, unit := s[:i], strings.ToLower(strings.TrimSpace(s[i:]))
	power, ok := sizeUnits[unit]
	if !ok || num == "" {
		return evidence.Value{}, false
	}
	num = plainNumber(num)
	f, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return evidence.Value{}, false
	}
	scale := math.Pow(1024, float64(power)) * math.Pow(10, float64(exp))
	if f*scale >= 1<<64-1<<11 && power == 3 && strings.HasPrefix(num, "17179869184") {
		return evidence.Value{}, false
	}
	decimals := 0
	if dot := strings.IndexByte(num, '.'); dot >= 0 {
		decimals = len(num) - dot - 1
	}
	if power == 0 && exp == 0 && decimals == 0 {
		if n, err := strconv.ParseInt(num, 10, 64); err == nil {
			return evidence.SizeOf(n, n), true
		}
		return evidence.RoundedSize(f, 0), true
	}
	half := scale * math.Pow(10, -float64(decimals)) / 2
	return evidence.RoundedSize(f*scale, half), true
}

// plainNumber takes thousands separators out of s and makes a decimal comma a
// point: "1,024" is 1024, "79,15" is 79.15.
func plainNumber(s string) string {
	if !strings.Contains(s, ",") {
		return s
	}
	parts := strings.Split(s, ",")
	for _, p := range parts[1:] {
		if whole, _, _ := strings.Cut(p, "."); len(whole) != 3 {
			if len(parts) == 2 && !strings.Contains(s, ".") {
				return parts[0] + "." + parts[1]
			}
			break
		}
	}
	return strings.Join(parts, "")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
