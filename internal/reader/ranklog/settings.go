package ranklog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxSettings      = 2000 // facts of settings in one artifact
	maxSettingLines  = 4000 // lines looked at for settings in one launch
	maxBlockLines    = 600  // lines of one printed configuration
	maxSettingValue  = 300
	maxPairs         = 400 // pairs of one line
	valuesPerSetting = 3   // different values of one key in one launch
)

// settings reads configuration that a run prints: argument lists, dotted rows,
// dumps in JSON, YAML or Python's repr, banners, command lines and environment.
// Each becomes the fact "setting.<key>" and, where the key is
// known, the declared fact that it sets.
type settings struct {
	count                       int
	lines                       int
	block                       int    // lines left of the configuration being printed, 0 outside
	writer                      key    // who prints it
	under                       string // JSON object that the rows stand in, as far as it matters
	values                      map[string][]string
	perGPU, accumulation, total int64 // of the banner, to infer the world size
	nproc, nnodes               int64 // of the command
	images, gpus, machines      int64 // of detectron2: one batch of all devices, devices of a host, hosts
}

// open reports whether more settings are wanted.
func (c *settings) open() bool { return c.count < maxSettings && c.lines < maxSettingLines }

func (c *settings) inBlock() bool { return c.block > 0 }

func (c *settings) newLaunch() {
	*c = settings{count: c.count}
}

var (
	pairExpr   = lazyre.New(`([A-Za-z_][\w./\-]*)(['"]?)\s*(?:[=:]|\.{4,})\s*('[^']*'|"[^"]*"|\[[^\]]*\]|<[\w.]+: '[^']*'>|[^\s,)}'"\[|]+)`)
	phraseExpr = lazyre.New(`([A-Z][A-Za-z]+(?: [A-Za-z]+)+)(?: \([^)]*\))? = ([\d,]+)`)
	envExpr    = lazyre.New(`^\s*(?:export |declare -x |env: |- |\+ )*([A-Z][A-Z0-9_]{3,})=("[^"]*"|'[^']*'|\S*)\s*;?$`)
	blockStart = lazyre.New(`(?:TrainingArguments|Config|Arguments|Args)\($|[Cc]onfig(?:uration)?\b[^{]{0,40}\{$|json = \{$|[Cc]onfig(?:uration)?:$|arguments -+$`)
)

// line reads the settings on a line that has a known key.
func (c *settings) line(s *session, m *message) {
	c.lines++
	if s.learned || m.met && !strings.Contains(m.text, "Namespace(") || m.oom || len(m.text) > 32<<10 {
		return
	}
	if f := envExpr.FindStringSubmatch(m.text); f != nil {
		c.set(s, m, f[1], unquote(f[2]), true)
		return
	}
	c.phrases(s, m)
	all := strings.Contains(m.text, "Namespace(") || strings.Contains(m.text, "....")
	c.pairs(s, m, all)
	if blockStart.MatchString(m.text) {
		c.block, c.writer, c.under = maxBlockLines, m.key, ""
	}
}

// follow reads a line of a configuration that is being printed.
func (c *settings) follow(s *session, m *message) {
	if c.block == 0 || m.key != c.writer {
		return
	}
	c.block--
	text := strings.TrimSpace(m.text)
	if text == "}" && !strings.HasPrefix(m.text, " ") || text == ")" || m.level >= 'W' || strings.Contains(text, "Traceback") || text == "" && c.block < maxBlockLines-1 {
		c.block = 0
		return
	}
	if i := strings.Index(text, "zero_optimization"); i >= 0 && strings.HasSuffix(text, "{") {
		c.under = "zero_optimization"
	} else if strings.HasPrefix(text, "}") {
		c.under = ""
	}
	if len(m.text) < 4<<10 && !m.met {
		c.pairs(s, m, true)
	}
}

// pairs reads key and value pairs; all of them, or only those whose key sets a
// declared fact.
func (c *settings) pairs(s *session, m *message, all bool) {
	text := m.text
	for range maxPairs {
		at := pairExpr.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		f := []string{text[at[0]:at[1]], text[at[2]:at[3]], text[at[4]:at[5]], text[at[6]:at[7]]}
		if strings.Contains(text[at[5]:at[6]], ": ") && assignment.MatchString(f[3]) {
			text = text[at[6]:] // a title before pairs: "config: batch_size=8 lr=0.1"
			continue
		}
		text = text[at[1]:]
		name := f[1]
		if c.under != "" && name == "stage" {
			name = "zero_stage"
		}
		if strings.HasPrefix(f[3], "{") || f[3] == "(" {
			continue
		}
		// A variable of the environment counts in a printed dict; elsewhere it
		// is usually advice ("try setting PYTORCH_CUDA_ALLOC_CONF=…").
		if f[2] == "" && name == strings.ToUpper(name) && strings.Contains(name, "_") {
			continue
		}
		c.set(s, m, name, unquote(f[3]), all)
	}
}

// phrases reads banners: "  Instantaneous batch size per device = 4".
func (c *settings) phrases(s *session, m *message) {
	for _, f := range phraseExpr.FindAllStringSubmatch(m.text, 16) {
		name, ok := phraseKeys[strings.ToLower(f[1])]
		if !ok {
			continue
		}
		value := strings.ReplaceAll(f[2], ",", "")
		c.set(s, m, name, value, true)
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "per_device_train_batch_size":
			c.perGPU = n
		case "gradient_accumulation_steps":
			c.accumulation = n
		case "total_train_batch_size":
			c.total = n
		}
		if unit := c.perGPU * c.accumulation; unit > 0 && c.total >= unit && c.total%unit == 0 {
			s.fact("run.world", evidence.IntOf(c.total/unit), m)
			c.total = 0
		}
	}
}

// phraseKeys are the banner lines of Hugging Face's Trainer, accelerate's
// examples and Unsloth, with the key that they state.
var phraseKeys = map[string]string{
	"instantaneous batch size per device": "per_device_train_batch_size",
	"batch size per device":               "per_device_train_batch_size",
	"gradient accumulation steps":         "gradient_accumulation_steps",
	"total train batch size":              "total_train_batch_size",
	"total batch size":                    "total_train_batch_size",
	"total optimization steps":            "total_optimization_steps",
	"total steps":                         "total_optimization_steps",
	"number of trainable parameters":      "number_of_trainable_parameters",
	"trainable parameters":                "number_of_trainable_parameters",
	"num examples":                        "num_examples",
}

// command reads the flags, assignments and environment of a command line.
func (c *settings) command(s *session, line string, m *message) {
	if line == "" || c.count >= maxSettings {
		return
	}
	words := shellWords(line)
	env := true
	for i := 0; i < len(words) && i < maxPairs; i++ {
		w := words[i]
		name, value, assigned := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "--") && len(w) > 2:
			if !assigned {
				value = "True"
				if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") && !strings.HasSuffix(words[i+1], ".py") {
					value = words[i+1]
					i++
				}
			}
			c.set(s, m, strings.TrimPrefix(name, "--"), value, true)
		case assigned && env && strings.ToUpper(name) == name:
			c.set(s, m, name, value, true)
		case assigned && keyName.MatchString(name): // hydra: train.batch_size=4
			c.set(s, m, strings.TrimLeft(name, "+~"), value, true)
		case dottedName.MatchString(w) && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"): // yacs: SOLVER.BASE_LR 0.01
			c.set(s, m, w, words[i+1], true)
			i++
		default:
			if w != "env" && w != "export" {
				env = false
			}
		}
	}
	// detectron2 and its relatives state the batch of all devices; one process works on each.
	if n := max(c.gpus, c.nproc) * max(1, c.machines, c.nnodes); n > 0 && c.images > 0 && c.images%n == 0 {
		s.fact("run.batch", evidence.IntOf(c.images/n), m)
	}
	c.images, c.gpus, c.machines = 0, 0, 0
	if c.nproc > 0 {
		s.fact("run.world", evidence.IntOf(c.nproc*max(1, c.nnodes)), m)
		c.nproc, c.nnodes = 0, 0
	}
}

// dottedName is a key of yacs, which is written before its value as a word of its own.
var dottedName = lazyre.New(`^[A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)+$`)

var keyName = lazyre.New(`^[+~]{0,2}[A-Za-z_][\w./\-]*$`)

// shellWords splits a command line at blanks outside quotes.
func shellWords(s string) []string {
	var words []string
	var b strings.Builder
	quote, any := byte(0), false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, any = c, true
		case c == ' ' || c == '\t':
			if any || b.Len() > 0 {
				words = append(words, b.String())
				b.Reset()
				any = false
			}
		default:
			b.WriteByte(c)
		}
	}
	if any || b.Len() > 0 {
		words = append(words, b.String())
	}
	return words
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// set states one setting, and what it means where the key is known. A value
// that was stated for the key in this launch is not stated again.
func (c *settings) set(s *session, m *message, name, value string, all bool) {
	name, short := reader.SettingName(name)
	value = strings.TrimSpace(value)
	known, ok := reader.SettingKeyOf(name, short)
	if !ok && !all || name == "" || value == "" || len(value) > maxSettingValue || c.count >= maxSettings {
		return
	}
	if c.values == nil {
		c.values = map[string][]string{}
	}
	if had := c.values[name]; len(had) >= valuesPerSetting || slices.Contains(had, value) {
		return
	}
	c.values[name] = append(c.values[name], value)
	c.count++
	s.fact("setting."+name, evidence.TextOf(value), m)
	switch short {
	case "nproc_per_node", "gpus_per_node", "nproc":
		c.nproc, _ = strconv.ParseInt(value, 10, 64)
	case "nnodes":
		c.nnodes, _ = strconv.ParseInt(value, 10, 64)
	case "ims_per_batch":
		c.images, _ = strconv.ParseInt(value, 10, 64)
	case "num_gpus":
		c.gpus, _ = strconv.ParseInt(value, 10, 64)
	case "num_machines":
		c.machines, _ = strconv.ParseInt(value, 10, 64)
	}
	if !ok {
		return
	}
	if known.Weak { // a broad name yields to a precise one
		if len(c.values["!"+known.Fact]) > 0 {
			return
		}
	} else {
		c.values["!"+known.Fact] = append(c.values["!"+known.Fact], value)
	}
	if v, ok := known.Value(short, value); ok {
		s.fact(known.Fact, v, m)
	}
}
