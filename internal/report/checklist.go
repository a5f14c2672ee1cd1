package report

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A checks is the list that confirms the leading cause, with how far the evidence answers it.
type checks struct {
	Left     []incident.CheckItem // to be done, in the entry's order
	Answered []incident.CheckItem // yes or no
	Yes, No  int
}

func checksOf(list []incident.CheckItem) checks {
	var c checks
	for _, x := range list {
		switch x.State {
		case "yes":
			c.Yes++
			c.Answered = append(c.Answered, x)
		case "no":
			c.No++
			c.Answered = append(c.Answered, x)
		default:
			c.Left = append(c.Left, x)
		}
	}
	return c
}

// All is how many items there are.
func (c checks) All() int { return len(c.Left) + len(c.Answered) }

// Progress says how far it is: 3 of 5 answered by the evidence.
func (c checks) Progress() string {
	return fmt.Sprintf("%d of %d answered by the evidence", len(c.Answered), c.All())
}

// Detail says how the answers came out, and what is left.
func (c checks) Detail() string {
	var parts []string
	switch {
	case c.Yes > 0 && c.No > 0:
		parts = append(parts, fmt.Sprintf("%d %s, %d %s not", c.Yes, verb(c.Yes, "hold"), c.No, verb(c.No, "do")))
	case c.Yes > 0:
		parts = append(parts, fmt.Sprintf("%d %s", c.Yes, verb(c.Yes, "hold")))
	case c.No > 0:
		parts = append(parts, fmt.Sprintf("%d %s not hold", c.No, verb(c.No, "do")))
	}
	if n := len(c.Left); n > 0 {
		parts = append(parts, fmt.Sprintf("%d left to do", n))
	}
	return strings.Join(parts, "; ")
}

// verb is a verb behind a number.
func verb(n int, v string) string {
	switch {
	case n != 1:
		return v
	case v == "do":
		return "does"
	}
	return v + "s"
}
