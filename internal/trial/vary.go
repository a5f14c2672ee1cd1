package trial

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// mostValues bounds how many values one name may have.
const mostValues = 1 << 20

// ParseVary reads NAME=LO..HI, NAME=LO..HI:STEP or NAME=LO..HI:pow2.
func ParseVary(text string) (incident.Varied, error) {
	v := incident.Varied{Step: 1}
	bad := func(why string) (incident.Varied, error) {
		return v, fmt.Errorf("%w: %q: %s; as BATCH=1..64, BATCH=8..512:8 or BATCH=1..256:pow2", errTemplate, text, why)
	}
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return bad("no name")
	}
	v.Name = name
	if err := CheckName(name); err != nil {
		return v, err
	}
	if name == Out || name == "SEED" || name == "CHECKPOINT" {
		return bad("{" + name + "} has a meaning of its own")
	}
	rest, step, stepped := strings.Cut(rest, ":")
	lo, hi, ok := strings.Cut(rest, "..")
	if !ok {
		return bad("no range")
	}
	var err error
	if v.Lo, err = strconv.ParseInt(lo, 10, 64); err != nil {
		return bad("its lower end is not a whole number")
	}
	if v.Hi, err = strconv.ParseInt(hi, 10, 64); err != nil {
		return bad("its upper end is not a whole number")
	}
	switch {
	case !stepped:
	case step == "pow2":
		v.Pow2, v.Step = true, 0
	default:
		if v.Step, err = strconv.ParseInt(step, 10, 64); err != nil || v.Step < 1 {
			return bad("its step is not a whole number above 0")
		}
	}
	switch {
	case v.Lo > v.Hi:
		return bad("its lower end is above its upper end")
	case v.Lo < 0:
		return bad("it is below 0")
	case !v.Pow2 && (v.Hi-v.Lo)/v.Step >= mostValues:
		return bad(fmt.Sprintf("more than %d values; a step or pow2 makes it fewer", mostValues))
	case len(ladderOf(v)) == 0:
		return bad("no power of two is in it")
	}
	return v, nil
}

// ladderOf are the values of v, ascending.
func ladderOf(v incident.Varied) []int64 {
	var out []int64
	if v.Pow2 {
		for i := range 63 {
			if p := int64(1) << i; p >= v.Lo && p <= v.Hi {
				out = append(out, p)
			}
		}
		return out
	}
	for x := v.Lo; ; x += v.Step {
		out = append(out, x)
		if v.Hi-x < v.Step {
			return out
		}
	}
}

// ParseKeep reads NAME*OTHER=PRODUCT.
func ParseKeep(text string) (*incident.KeptProduct, error) {
	left, right, ok := strings.Cut(text, "=")
	name, other, two := strings.Cut(left, "*")
	n, err := strconv.ParseInt(right, 10, 64)
	if !ok || !two || err != nil || n < 1 || name == other {
		return nil, fmt.Errorf("%w: %q: as MICRO*ACCUM=64", errTemplate, text)
	}
	for _, s := range []string{name, other} {
		if err := CheckName(s); err != nil {
			return nil, err
		}
	}
	return &incident.KeptProduct{Name: name, Other: other, Product: n}, nil
}

// ParseAlso reads NAME=V1,V2,…. Numbers are put in descending order, because the largest shape is
// the one that shows first what fails; anything else stays as it is given.
func ParseAlso(text string) (incident.Also, error) {
	name, list, ok := strings.Cut(text, "=")
	a := incident.Also{Name: name, Values: strings.Split(list, ",")}
	if err := CheckName(name); err != nil {
		return a, err
	}
	if !ok || slices.Contains(a.Values, "") {
		return a, fmt.Errorf("%w: %q: as SEQ=4096,512", errTemplate, text)
	}
	if len(a.Values) > 16 {
		return a, fmt.Errorf("%w: %q: more than 16 values", errTemplate, text)
	}
	number := map[string]int64{}
	for _, v := range a.Values {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return a, nil
		}
		number[v] = n
	}
	slices.SortStableFunc(a.Values, func(x, y string) int {
		switch {
		case number[x] > number[y]:
			return -1
		case number[x] < number[y]:
			return 1
		}
		return 0
	})
	return a, nil
}

// combinations are all values of all of also together, in the order of the lists.
func combinations(also []incident.Also) []map[string]string {
	out := []map[string]string{{}}
	for _, a := range also {
		var next []map[string]string
		for _, m := range out {
			for _, v := range a.Values {
				c := map[string]string{a.Name: v}
				for k, x := range m {
					c[k] = x
				}
				next = append(next, c)
			}
		}
		out = next
	}
	return out
}

// A rung is one value of a search: what stands for each name.
type rung struct {
	value  int64
	values map[string]int64
}

// rungs are the values of the first name of p, with what the kept product makes of them, and
// those that are left out.
func (p *Plan) rungs() ([]rung, []incident.SkippedValue) {
	v := p.Vary[0]
	if p.Keep != nil {
		v = *p.varied(p.Keep.Name)
	}
	var out []rung
	skipped := []incident.SkippedValue{}
	for _, x := range ladderOf(v) {
		r := rung{x, map[string]int64{v.Name: x}}
		if k := p.Keep; k != nil {
			why := ""
			switch {
			case x == 0 || k.Product%x != 0:
				why = fmt.Sprintf("%d is no multiple of it", k.Product)
			default:
				y := k.Product / x
				r.values[k.Other] = y
				if o := p.varied(k.Other); o != nil && !slices.Contains(ladderOf(*o), y) {
					why = fmt.Sprintf("%s would be %d, which is none of its values", k.Other, y)
				}
			}
			if why != "" {
				skipped = append(skipped, incident.SkippedValue{Name: v.Name, Value: x, Why: why})
				continue
			}
		}
		out = append(out, r)
	}
	return out, skipped
}

func (p *Plan) varied(name string) *incident.Varied {
	for i := range p.Vary {
		if p.Vary[i].Name == name {
			return &p.Vary[i]
		}
	}
	return nil
}

// Check says what is wrong with a plan: a name that does not stand in the command, one that is
// declared twice, more names than can be searched.
func (p *Plan) Check() error {
	if len(p.Template) == 0 {
		return fmt.Errorf("%w: no command", errTemplate)
	}
	if len(p.Vary) == 0 {
		return fmt.Errorf("%w: nothing varies", errTemplate)
	}
	var names []string
	for _, v := range p.Vary {
		names = append(names, v.Name)
	}
	if k := p.Keep; k != nil {
		if p.varied(k.Name) == nil {
			return fmt.Errorf("%w: %s of the kept product has no range", errTemplate, k.Name)
		}
		if p.varied(k.Other) == nil {
			names = append(names, k.Other)
		}
	}
	for _, a := range p.Also {
		names = append(names, a.Name)
	}
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] {
			return fmt.Errorf("%w: %s is declared twice", errTemplate, n)
		}
		seen[n] = true
		if !p.stands(n) {
			return fmt.Errorf("%w: {%s} does not stand in the command", errTemplate, n)
		}
	}
	if len(combinations(p.Also)) > 64 {
		return fmt.Errorf("%w: more than 64 shapes for each value", errTemplate)
	}
	most := 2
	if p.Keep != nil {
		most = 1
		if p.varied(p.Keep.Other) != nil {
			most = 2
		}
	}
	if p.Find == incident.SmallestFailing {
		if p.Keep != nil {
			return fmt.Errorf("%w: a product is kept while the largest is looked for, not the smallest that fails", errTemplate)
		}
		most = 8
	}
	if len(p.Vary) > most {
		return fmt.Errorf("%w: %d names vary; at most %d can", errTemplate, len(p.Vary), most)
	}
	if len(p.Vary) == 2 && p.Keep == nil && p.Find != incident.SmallestFailing {
		if n := len(ladderOf(p.Vary[1])); n > 64 {
			return fmt.Errorf("%w: %s has %d values, and each is a search of its own; at most 64, a step or pow2 makes it fewer", errTemplate, p.Vary[1].Name, n)
		}
	}
	if rs, _ := p.rungs(); len(rs) == 0 {
		return fmt.Errorf("%w: no value of %s divides %d", errTemplate, p.Keep.Name, p.Keep.Product)
	}
	return nil
}

// stands reports whether {name} or {name:list} is in the command or in what is set for it.
func (p *Plan) stands(name string) bool {
	return len(Names(slices.Concat(p.Template, p.Set), []string{name, name + ":list"})) > 0
}

// Replacements are what stands for names in a template: each value, and for {NAME:list} the
// numbers below it with commas, as CUDA_VISIBLE_DEVICES has them.
func Replacements(values map[string]string) map[string]string {
	out := map[string]string{}
	for n, v := range values {
		out[n] = v
		if k, err := strconv.Atoi(v); err == nil && k >= 0 && k <= 4096 {
			var b strings.Builder
			for i := range k {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(strconv.Itoa(i))
			}
			out[n+":list"] = b.String()
		}
	}
	return out
}

// mostTrials is how many trials a search of n values takes at most before its repeats.
func mostTrials(n int) int { return bits.Len(uint(n)) }
