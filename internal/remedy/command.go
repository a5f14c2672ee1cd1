package remedy

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// flags name the command-line options by which launchers and training scripts
// take a value that a remedy computes. A present value that differs from the
// run's own is left alone: then the flag means something else.
var flags = []struct {
	now, next string // facts: the run's value and the computed one
	option    *lazyre.Regexp
}{
	{"run.batch", "fix.micro_batch", lazyre.New(`((?:^|\s)-{1,2}(?:per[-_](?:device|gpu)[-_]train[-_]batch[-_]size|train[-_](?:micro[-_])?batch[-_]size(?:[-_]per[-_]gpu)?|(?:micro|device)[-_]batch[-_]size|batch[-_]size|batch|bs)[ =])(\d+)\b`)},
	{"run.eval_batch", "fix.eval_batch", lazyre.New(`((?:^|\s)-{1,2}(?:per[-_](?:device|gpu)[-_])?(?:eval|val)[-_](?:micro[-_])?batch[-_]size[ =])(\d+)\b`)},
	{"run.accumulation", "fix.accumulation", lazyre.New(`((?:^|\s)-{1,2}(?:gradient[-_]accumulation[-_]steps|grad[-_]accum(?:ulation)?(?:[-_]steps)?|accum(?:ulate)?(?:[-_]steps|[-_]grad[-_]batches)?|accumulation[-_]steps|ga)[ =])(\d+)\b`)},
}

var (
	toFile     = lazyre.New(`\s+(?:\|&?\s*tee(?:\s+-\S+)*\s+[^\s"'|;&]+|(?:&|\d)?>>?\s*[^\s"'|;&]+)$`)
	errorsToo  = lazyre.New(`\s+2>&1$`)
	background = lazyre.New(`\s*&$`)
)

// withoutOutput drops the redirections that end a command: run again as it
// stands, it would overwrite the log that was diagnosed.
func withoutOutput(command string) string {
	s := background.ReplaceAllString(strings.TrimSpace(command), "")
	cut := false
	for {
		rest := toFile.ReplaceAllString(errorsToo.ReplaceAllString(s, ""), "")
		if rest == s {
			break
		}
		s, cut = rest, true
	}
	if !cut {
		return command
	}
	return s
}

// rateOption takes the learning rate, which is no whole number.
var rateOption = lazyre.New(`((?:^|\s)-{1,2}(?:lr|learning[-_]rate|base[-_]lr|max[-_]lr|peak[-_]lr)[ =])([\d.]+(?:[eE][-+]?\d+)?)`)

// The options that ask for fp16: a switch of that name, or a precision.
var (
	halfSwitch = lazyre.New(`((?:^|\s)--(?:use[-_])?)fp16((?:[ =](?i:true|1))?(?:\s|$))`)
	halfOption = lazyre.New(`((?:^|\s)--(?:mixed[-_]precision|precision|dtype|torch[-_]dtype|amp[-_]dtype|amp)[ =])(fp16|float16|16-mixed|16|half)(\s|$)`)
)

// withChange puts the computed values into the run's own command. It reports
// whether every computed value that differs found its option there.
func withChange(command string, values map[string]evidence.Value) (string, bool) {
	complete := true
	for _, f := range flags {
		next, ok := values[f.next]
		if !ok {
			continue
		}
		now := values[f.now].I
		if now == 0 && f.now == "run.accumulation" {
			now = 1
		}
		if next.I == now {
			continue
		}
		found := false
		command = f.option.ReplaceAllStringFunc(command, func(m string) string {
			g := f.option.FindStringSubmatch(m)
			if n, err := strconv.ParseInt(g[2], 10, 64); err != nil || n != now {
				return m
			}
			found = true
			return g[1] + strconv.FormatInt(next.I, 10)
		})
		complete = complete && found
	}
	if next, ok := values["fix.lr"]; ok {
		found := false
		command = rateOption.ReplaceAllStringFunc(command, func(m string) string {
			g := rateOption.FindStringSubmatch(m)
			if f, err := strconv.ParseFloat(g[2], 64); err != nil || f != values["run.lr"].F {
				return m
			}
			found = true
			return g[1] + next.String()
		})
		complete = complete && found
	}
	if values["fix.precision"].S == "bf16" {
		was := command
		command = halfSwitch.ReplaceAllString(command, "${1}bf16$2")
		command = halfOption.ReplaceAllStringFunc(command, func(m string) string {
			g := halfOption.FindStringSubmatch(m)
			return g[1] + map[string]string{"float16": "bfloat16", "16-mixed": "bf16-mixed", "16": "bf16-mixed"}[g[2]] + map[string]string{"fp16": "bf16", "half": "bf16"}[g[2]] + g[3]
		})
		complete = complete && command != was
	}
	return command, complete
}
