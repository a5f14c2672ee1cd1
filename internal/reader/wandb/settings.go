package wandb

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/reader"
)

// maxNamed bounds the keys of a configuration that are kept until the log was read.
const maxNamed = 4096

// settings is the configuration of a run, of which later records change parts.
type settings struct {
	list  []setting
	index map[string]int
	more  int64
}

type setting struct {
	name, value string
	span        evidence.Span
	gone        bool
}

// set notes a value; a later one replaces it.
func (c *settings) set(name, value string, at evidence.Span) {
	if name == "" || name == "_wandb" || strings.HasPrefix(name, "_wandb.") {
		return
	}
	if i, ok := c.index[name]; ok {
		if c.list[i].value != value || c.list[i].gone {
			c.list[i] = setting{name, value, at, false}
		}
		return
	}
	if len(c.list) >= maxNamed {
		c.more++
		return
	}
	if c.index == nil {
		c.index = map[string]int{}
	}
	c.index[name] = len(c.list)
	c.list = append(c.list, setting{name, value, at, false})
}

// add notes a value where there is none.
func (c *settings) add(name, value string, at evidence.Span) {
	if i, ok := c.index[name]; !ok || c.list[i].gone {
		c.set(name, value, at)
	}
}

// record takes a ConfigRecord.
func (c *settings) record(body []byte, at evidence.Span) error {
	err := wandblog.Items(body, 1, func(i wandblog.Item) bool {
		wandblog.Flatten(i.Name, i.JSON, func(name, value string) {
			span := at
			span.Quote = clean(name + " = " + value)
			c.set(name, value, span)
		})
		return true
	})
	if err != nil {
		return err
	}
	return wandblog.Items(body, 2, func(i wandblog.Item) bool {
		if at, ok := c.index[i.Name]; ok {
			c.list[at].gone = true
		}
		return true
	})
}

// command notes how the program was called. What is given as --name value is a setting where
// the configuration has none of that name.
func (c *settings) command(program string, args []string, at evidence.Span) {
	if program == "" && len(args) == 0 {
		return
	}
	at.Quote = clean(strings.TrimSpace(program + " " + strings.Join(args, " ")))
	if program != "" {
		c.add("program", program, at)
	}
	if len(args) > 0 {
		c.add("args", strings.Join(args, " "), at)
	}
	for i, a := range args {
		name, ok := strings.CutPrefix(a, "--")
		if !ok {
			continue
		}
		if name, value, ok := strings.Cut(name, "="); ok {
			c.add(name, value, at)
		} else if i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			c.add(name, args[i+1], at)
		}
	}
}

// state hands the configuration over.
func (c *settings) state(rec *reader.Recording) {
	for _, s := range c.list {
		if !s.gone {
			rec.Setting(s.name, s.value, s.span)
		}
	}
	rec.Run.MoreSettings += c.more
}
