package evidence

import (
	"slices"
	"strconv"
	"strings"
)

// RankRanges writes ranks in ascending order with runs drawn together: "0-3,6".
func RankRanges(ranks []int) string {
	l := slices.Clone(ranks)
	slices.Sort(l)
	var b strings.Builder
	for i := 0; i < len(l); {
		j := i
		for j+1 < len(l) && l[j+1] == l[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(l[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(l[j]))
		}
		i = j + 1
	}
	return b.String()
}

// RanksOf reads what RankRanges wrote; nil if it is something else or names more
// than most.
func RanksOf(s string, most int) []int {
	var out []int
	for f := range strings.SplitSeq(s, ",") {
		from, to, run := strings.Cut(f, "-")
		a, err := strconv.Atoi(from)
		b := a
		if run && err == nil {
			b, err = strconv.Atoi(to)
		}
		if err != nil || b < a || b-a >= most-len(out) {
			return nil
		}
		for n := a; n <= b; n++ {
			out = append(out, n)
		}
	}
	return out
}
