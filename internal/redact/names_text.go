package redact

import (
	"net/netip"
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// lines takes names out of each line of a text, or learns them. Ends of lines are kept.
func (n *Names) lines(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	var p passage
	for len(text) > 0 {
		end := strings.IndexAny(text, "\r\n")
		line, sep := text, ""
		if end >= 0 {
			line, sep = text[:end], text[end:end+1]
		}
		text = text[len(line)+len(sep):]
		next := firstLine(text)
		if sep == "\r" && strings.HasPrefix(text, "\n") {
			next = firstLine(text[1:])
		}
		b.WriteString(n.line(line, next, &p))
		b.WriteString(sep)
	}
	return b.String()
}

// firstLine is text up to the first end of a line.
func firstLine(text string) string {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		return text[:i]
	}
	return text
}

// A passage is what of the lines before matters for the next one.
type passage struct {
	block   int  // lines of a key block that may still come
	wrapped bool // the line before ended in a secret, which may go on
	named   bool // the line before ended in a name whose value is a secret
}

// terminal are the sequences that colour text and move the cursor.
var terminal = lazyre.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`)

const maxLine = 64 << 10 // longer ones are handled in pieces

func (n *Names) line(s, next string, p *passage) string {
	if s == "" {
		return s
	}
	if len(s) > maxLine {
		cut := maxLine
		if i := strings.LastIndexAny(s[:cut], " ,;\t\""); i > maxLine/2 {
			cut = i
		}
		return n.line(s[:cut], "", p) + n.line(s[cut:], next, p)
	}
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = terminal.ReplaceAllString(s, "") // a colour may stand inside of a name
	}
	// Logs say the same again and again. A line that is as it was stays so where nothing of the
	// lines around decides.
	alone := *p == (passage{}) && !mayWrap(s, next)
	if alone && n.same[s] {
		return s
	}
	was := s
	s = n.handled(s, next, p)
	if alone && s == was && *p == (passage{}) && len(n.same) < 1<<16 {
		n.same[was] = true
	}
	return s
}

// mayWrap reports whether a secret may begin on a line and end on the next.
func mayWrap(s, next string) bool {
	if len(s) < 20 || next == "" {
		return false
	}
	tail := s[tailBegin(s):]
	return len(tail) >= 4 && (holds(tail, shapeStart) || holds(strings.ToLower(tail), shapeHints))
}

// handled is a line without what is to be taken out of it.
func (n *Names) handled(s, next string, p *passage) string {
	was := s
	s = p.secrets(s, next)
	n.learnSecrets(was, s)
	if n.hidden != nil {
		s = n.hidden.Replace(s)
	}
	if !n.learning && s != was {
		n.counts[Secrets] += max(0, strings.Count(s, mask)-strings.Count(was, mask))
	}
	s = n.prose(s)
	s = n.urls(s)
	s = n.emails(s)
	s = n.addresses(s)
	s = n.paths(s)
	if n.learning {
		n.contexts(s)
		return s
	}
	s = n.contexts(s)
	return n.running(s)
}

// learnSecrets remembers values that are long and mixed enough to be found again where nothing
// around says what they are.
func (n *Names) learnSecrets(was, now string) {
	if !n.learning || was == now || len(n.secrets) >= 4096 {
		return
	}
	for _, v := range taken(was, now) {
		v = strings.Trim(v, "\"'\\")
		if len(v) >= 10 && len(v) <= 4096 && random(v) && !numeric(v) && !strings.ContainsAny(v, " \t/") {
			n.secrets[v] = true
		}
	}
}

var (
	headRun   = lazyre.New(`^[A-Za-z0-9_.+/=-]+`)
	wholeRun  = lazyre.New(`^\s*[A-Za-z0-9_.+/=-]{6,}\s*["'\\,;]*\s*$`)
	nameAtEnd = lazyre.New(`(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)\\?["']?\s*[:=]\s*(?:[|>][-+]?|\\)?\s*["']?$`)
	firstWord = lazyre.New(`^(\s*["']?)([^\s"']+)`)
)

// tailBegin is where the last run of a line begins.
func tailBegin(s string) int {
	i := len(s)
	for i > 0 && (nameByte(s[i-1]) && s[i-1] != ':' || strings.IndexByte(".+/=-", s[i-1]) >= 0) {
		i--
	}
	return i
}

// secrets masks the secrets of one line, those that began on the line before among them.
func (p *passage) secrets(s, next string) string {
	if p.block > 0 {
		p.block--
		if blockEnd.MatchString(s) {
			p.block = 0
			return s
		}
		if blockHead.MatchString(s) || strings.TrimSpace(s) == "" {
			return s
		}
		if m := blockLine.FindStringIndex(s); m != nil {
			return s[:m[0]] + mask
		}
		p.block = 0
	}
	if p.named {
		p.named = false
		if g := firstWord.FindStringSubmatch(s); g != nil && !harmless(g[2]) && !strings.HasSuffix(g[2], ":") && len(g[2]) >= 6 && (random(g[2]) || !ordinary(g[2])) {
			s = g[1] + mask + s[len(g[0]):]
		}
	}
	if p.wrapped {
		p.wrapped = false
		if h := headRun.FindString(strings.TrimLeft(s, " \t")); len(h) >= 3 && (random(h) || wholeRun.MatchString(s) && strings.ContainsAny(h, "0123456789_+/=ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
			at := strings.Index(s, h)
			p.wrapped = at+len(h) == len(s) && len(h) >= 60
			return s[:at] + mask + Thorough(s[at+len(h):])
		}
	}
	if (strings.Contains(s, "-----BEGIN") || strings.Contains(s, "PuTTY-") || strings.Contains(s, "Private-Lines")) && pgpBlock.MatchString(s) && !blockEnd.MatchString(s) {
		p.block = 200
	}
	out := Thorough(s)
	if end := strings.TrimRight(out, " \t\"'"); end != "" && strings.IndexByte(`:=\|>+-`, end[len(end)-1]) >= 0 && nameAtEnd.MatchString(out) {
		p.named = true
	}
	if strings.HasSuffix(strings.TrimRight(out, "\\\"'"), mask) && !strings.HasSuffix(strings.TrimRight(s, "\\\"'"), mask) && (strings.HasSuffix(s, `\`) || len(s) >= 40) && !strings.HasSuffix(s, `"`) && !strings.HasSuffix(s, `'`) {
		p.wrapped = true
	}
	// A shape that a narrow terminal broke: it is none on either line alone.
	if len(s) >= 20 && !p.wrapped && next != "" {
		tail := out[tailBegin(out):]
		head := headRun.FindString(next)
		if len(tail) >= 4 && len(head) >= 4 && (holds(tail, shapeStart) || holds(strings.ToLower(tail), shapeHints)) {
			if joined := Thorough(tail + head); joined != tail+head {
				for _, v := range taken(tail+head, joined) {
					if at := strings.Index(tail+head, v); at >= 0 && at < len(tail) && at+len(v) > len(tail) {
						p.wrapped = true
						return out[:len(out)-len(tail)+at] + mask
					}
				}
			}
		}
	}
	return out
}

// Fields of records of prompts and of data, in quotes or to the end of the line. What weak names
// hold may as well be a message of the program, which stays.
var (
	proseField = lazyre.New(`(?i)((?:^|[^A-Za-z0-9_])(?:\\*["'])?(prompts?|system_prompt|user_prompt|completions?|generated_text|generations?|instructions?|questions?|answers?|responses?|captions?|transcripts?|transcription|translation|summary_text|passages?|documents?|sentences?|input_text|target_text|output_text|source_text|decoded|predictions?|hypothes[ei]s|references?|utterances?|chosen|rejected|query|queries|text|texts|inputs?|outputs?|content|article|story|review|comment|body)(?:\\*["'])?\s*[=:]\s*)(\[\s*)?(\\+"(?:[^"\\]|\\+[^"\\])*\\+"|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)`)
	proseLine  = lazyre.New(`(?i)^(.{0,80}?(?:^|[^A-Za-z0-9_"'])(?:(?:user |system |model |input |raw )?prompt|completion|generated text|generation|instruction|question|answer|response|transcript|caption|decoded|prediction|hypothesis|reference|sample text|input text|ground truth)\s*(?:#?\d+)?\s*[:=]\s+)((?:[^\s]+\s+){2,}[^\s].*)$`)
	weakField  = setOf(`text texts input inputs output outputs content body comment query references reference response responses predictions prediction decoded`)
	ofProgram  = lazyre.New(`(?i)error|exception|traceback|warn|\binfo\b|loss|epoch|\bstep\b|cuda|nccl|memory|killed|signal|gradient|tensor|shape|dtype|device|torch|rank|batch|timeout|failed|exit`)
	moreItems  = lazyre.New(`^(\s*,\s*)("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)`)
	proseHints = []string{"prompt", "completion", "generat", "instruction", "question", "answer", "response", "caption", "transcript", "transl", "summary", "passage", "document", "sentence", "text", "decoded", "prediction", "hypothes", "reference", "utterance", "chosen", "rejected", "quer", "input", "output", "content", "article", "story", "review", "comment", "body", "ground truth"}
)

// prose takes out what fields of prompts and data hold, where it is more than one word.
func (n *Names) prose(s string) string {
	if !holds(strings.ToLower(s), proseHints) {
		return s
	}
	out, rest := "", s
	for {
		m := proseField.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		name := strings.ToLower(rest[m[4]:m[5]])
		value := rest[m[8]:m[9]]
		out += rest[:m[8]]
		rest = rest[m[9]:]
		replaced := n.sample(name, value)
		out += replaced
		if m[6] >= 0 { // a list
			for {
				g := moreItems.FindStringSubmatch(rest)
				if g == nil {
					break
				}
				out += g[1] + n.sample(name, g[2])
				rest = rest[len(g[0]):]
			}
		}
	}
	s = out + rest
	if g := proseLine.FindStringSubmatch(s); g != nil && !ofProgram.MatchString(g[2]) && !strings.Contains(g[2], Prose+"-") {
		s = g[1] + n.token(Prose, g[2])
	}
	return s
}

// sample is one quoted value, taken out where it is prose.
func (n *Names) sample(name, quoted string) string {
	open := quoted[:len(quoted)-len(strings.TrimLeft(quoted, `\`))]
	q := quoted[:len(open)+1]
	inner := strings.TrimPrefix(quoted, q)
	closed := strings.HasSuffix(inner, q)
	if closed {
		inner = inner[:len(inner)-len(q)]
	}
	if !strings.ContainsAny(inner, " \t\u3000") && len([]rune(inner)) < 24 && !wide(inner) || weakField.has(name) && ofProgram.MatchString(inner) {
		return quoted
	}
	if strings.IndexFunc(inner, func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x2E80 || r >= 0xC0 && r < 0x2000
	}) < 0 || inner == mask {
		return quoted
	}
	out := q + n.token(Prose, inner)
	if closed {
		out += q
	}
	return out
}

// wide reports whether text is of a script without blanks between words, and more than a word.
func wide(s string) bool {
	count := 0
	for _, r := range s {
		if r > 0x2E80 {
			count++
		}
	}
	return count >= 4
}

var (
	urlText  = lazyre.New(`(?i)\b([a-z][a-z0-9+.-]{1,15}://)([^\s"'<>|\x60\\]+)`)
	scpText  = lazyre.New(`\b([A-Za-z][\w.-]{0,63})@([A-Za-z0-9][\w.-]{0,200}):((?:[\w.~+-]+/)*[\w.~+-]+)`)
	urlEnd   = lazyre.New(`[)\].,;:!}]+$`)
	hostPort = lazyre.New(`^(\[[0-9A-Fa-f:.%]+\]|[^:/?#]*)(:\d+)?`)
)

// urls takes hosts and paths out of addresses, but for those that everybody knows.
func (n *Names) urls(s string) string {
	if strings.Contains(s, "://") {
		s = urlText.ReplaceAllStringFunc(s, func(m string) string {
			g := urlText.FindStringSubmatch(m)
			scheme, rest := g[1], g[2]
			tail := urlEnd.FindString(rest)
			rest = rest[:len(rest)-len(tail)]
			if strings.EqualFold(scheme, "file://") {
				return scheme + n.path(rest, true) + tail
			}
			if knownPublic(rest) {
				return m
			}
			user := ""
			if i := strings.LastIndexByte(rest[:strings.IndexAny(rest+"/", "/?#")], '@'); i >= 0 {
				who, pass, has := strings.Cut(rest[:i], ":")
				user = n.user(who)
				if has {
					if pass != mask {
						pass = mask
						if !n.learning {
							n.counts[Secrets]++
						}
					}
					user += ":" + pass
				}
				user, rest = user+"@", rest[i+1:]
			}
			authority := hostPort.FindStringSubmatch(rest)
			where, more := authority[1], rest[len(authority[0]):]
			switch strings.ToLower(strings.TrimSuffix(scheme, "://")) {
			case "s3", "gs", "az", "abfs", "abfss", "wasb", "wasbs", "hdfs", "oss", "obs", "cos", "hf", "docker", "dbfs", "sqlite", "viewfs", "r2", "gcs", "s3a":
				where = n.segment(where, false)
			default:
				where = n.siteOf(where)
			}
			more, query, has := strings.Cut(more, "?")
			more = n.path(more, true)
			if has {
				more += "?" + n.query(query)
			}
			return scheme + user + where + authority[2] + more + tail
		})
	}
	if strings.Contains(s, "@") {
		s = scpText.ReplaceAllStringFunc(s, func(m string) string {
			g := scpText.FindStringSubmatch(m)
			if numeric(g[3]) || !strings.Contains(g[3], "/") && !strings.Contains(g[3], ".") {
				return m
			}
			return n.user(g[1]) + "@" + n.siteOf(g[2]) + ":" + n.path(g[3], true)
		})
	}
	return s
}

// query takes the values out of what follows the question mark of an address.
func (n *Names) query(q string) string {
	list := strings.Split(q, "&")
	for i, item := range list {
		name, value, has := strings.Cut(item, "=")
		if has && value != mask && value != "" && !numeric(value) {
			list[i] = name + "=" + n.segment(value, false)
		}
	}
	return strings.Join(list, "&")
}

// knownPublic reports whether an address without its scheme is one that everybody knows.
func knownPublic(rest string) bool {
	low := strings.ToLower(rest)
	for _, p := range publicHosts {
		p = strings.ToLower(p)
		site, below, has := strings.Cut(p, "/")
		host := low
		if i := strings.IndexAny(low, "/?#:"); i >= 0 {
			host = low[:i]
		}
		if has {
			if host == site && (strings.HasPrefix(low[len(host):], "/"+below+"/") || low[len(host):] == "/"+below) {
				return true
			}
			continue
		}
		if host == site || strings.HasSuffix(host, "."+site) {
			return true
		}
	}
	return false
}

// publicHost reports whether the name of a host alone says nothing.
func publicHost(low string) bool {
	for _, s := range services {
		if low == s || strings.HasSuffix(low, "."+s) && (s == "huggingface.co" || s == "wandb.ai") {
			return true
		}
	}
	return knownPublic(low)
}

// siteOf is the host of an address.
func (n *Names) siteOf(where string) string {
	low := strings.ToLower(where)
	if where == "" || loopback(strings.Trim(low, "[]")) || publicHost(low) {
		return where
	}
	if addressLike(strings.Trim(where, "[]")) {
		inner := strings.Trim(where, "[]")
		if t := n.address(inner); t != inner {
			if n.learning {
				return where
			}
			return t
		}
		return where
	}
	return n.hostToken(where)
}

// hostToken is the token of a host by any of its names.
func (n *Names) hostToken(name string) string {
	if n.learning {
		n.host(name)
		return name
	}
	low := strings.ToLower(name)
	if key, ok := n.words[low]; ok {
		n.took(key)
		return n.tokens[key]
	}
	short, _, _ := strings.Cut(low, ".")
	if n.kinds[short] == Host {
		n.took(short)
		return n.tokens[short]
	}
	if ordinary(short) && !strings.Contains(low, ".") {
		return name
	}
	return n.token(Host, low)
}

// user is the token of a user.
func (n *Names) user(name string) string {
	if len(name) < 2 || people.has(strings.ToLower(name)) || numeric(name) || strings.HasPrefix(name, "$") || name == mask {
		return name
	}
	if n.learning {
		n.put(User, name)
		n.word(name)
		return name
	}
	return n.token(User, name)
}

var (
	emailText = lazyre.New(`[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}(?:@|%40|\\u0040|&#64;| ?\[at\] ?| ?\(at\) ?)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+){0,6}\.[A-Za-z]{2,24}\b`)
	sshText   = lazyre.New(`(^|[\s"'=(])([a-z_][a-z0-9_.-]{1,31})@([A-Za-z][A-Za-z0-9.-]{2,200})`)
)

// emails takes out e-mail addresses, and users at hosts.
func (n *Names) emails(s string) string {
	if !strings.Contains(s, "@") && !strings.Contains(s, "40") && !strings.Contains(s, "64;") && !strings.Contains(s, "at)") && !strings.Contains(s, "at]") {
		return s
	}
	s = emailText.ReplaceAllStringFunc(s, func(m string) string {
		dot := strings.LastIndexByte(m, '.')
		if extensions.has(strings.ToLower(m[dot+1:])) || strings.HasPrefix(m, "git@") {
			return m
		}
		return n.token(Email, strings.ToLower(strings.NewReplacer("%40", "@", `\u0040`, "@", "&#64;", "@", " [at] ", "@", "[at]", "@", " (at) ", "@", "(at)", "@").Replace(m)))
	})
	if strings.Contains(s, "@") {
		s = sshText.ReplaceAllStringFunc(s, func(m string) string {
			g := sshText.FindStringSubmatch(m)
			if strings.HasPrefix(g[3], "latest") || ordinary(g[3]) && !strings.ContainsAny(g[3], "0123456789.") || ordinary(g[2]) && !people.has(g[2]) {
				return m
			}
			return g[1] + n.user(g[2]) + "@" + n.hostToken(g[3])
		})
	}
	return s
}

var (
	v4Text    = lazyre.New(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	v6Text    = lazyre.New(`[0-9A-Fa-f]{1,4}:[0-9A-Fa-f:]{2,37}(?:%[a-z0-9]+)?`)
	macText   = lazyre.New(`\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b`)
	ofNetwork = lazyre.New(`(?i)(?:addr(?:ess)?|\bip|host|from|\bto|connect(?:ed|ing)?|endpoint|peer|server|node|inet6?|via|@|//)["'=:\s(\[]*$`)
	version   = lazyre.New(`(?i)(?:==|>=|<=|~=|[a-z]-|v|version|cudnn|nccl|cuda|cu|driver|release|firmware|vbios|build|ver\.?)["']?[\s:=]*$`)
)

// addresses takes out addresses of the network; those of this machine to itself stay.
func (n *Names) addresses(s string) string {
	if strings.Count(s, ".") >= 3 {
		s = around(v4Text, s, func(before, m, after string) string {
			if version.MatchString(before) || strings.HasSuffix(before, ".") || len(after) > 1 && after[0] == '.' && after[1] >= '0' && after[1] <= '9' {
				return m
			}
			if m[1] == '.' && !(ofNetwork.MatchString(before) || after != "" && (after[0] == '<' || after[0] == '/' || len(after) > 1 && after[0] == ':' && after[1] >= '0' && after[1] <= '9')) {
				return m // below 10.0.0.0 most are versions
			}
			return n.address(m)
		})
	}
	if strings.Count(s, ":") >= 2 || strings.Count(s, "-") >= 5 {
		s = macText.ReplaceAllStringFunc(s, func(m string) string {
			if m == "00:00:00:00:00:00" || strings.EqualFold(m, "ff:ff:ff:ff:ff:ff") || strings.IndexFunc(m, func(r rune) bool { return r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' || r == '0' }) < 0 {
				return m
			}
			return n.token(Address, strings.ToLower(m))
		})
		s = around(v6Text, s, func(before, m, after string) string {
			if before != "" && nameByte(before[len(before)-1]) || after != "" && (nameByte(after[0]) || after[0] == ':') {
				return m
			}
			return n.address(m)
		})
	}
	return s
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':'
}

// around replaces matches by what fn makes of them and of what stands around them.
func around(re *lazyre.Regexp, s string, fn func(before, m, after string) string) string {
	var b strings.Builder
	from := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(s[from:m[0]])
		b.WriteString(fn(s[:m[0]], s[m[0]:m[1]], s[m[1]:]))
		from = m[1]
	}
	return b.String() + s[from:]
}

// address is the token of an IP address that is of some network.
func (n *Names) address(m string) string {
	a, err := netip.ParseAddr(m)
	if err != nil || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || m == "255.255.255.255" {
		return m
	}
	if a.Is6() && !a.Is4In6() {
		b := a.As16()
		if b[0]>>5 != 1 && b[0]&0xFE != 0xFC && !(b[0] == 0xFE && b[1]&0xC0 == 0x80) {
			return m
		}
	}
	return n.token(Address, strings.ToLower(m))
}

func addressLike(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func loopback(low string) bool {
	if low == "localhost" || strings.HasPrefix(low, "localhost.") || low == "ip6-localhost" || low == "host.docker.internal" {
		return true
	}
	a, err := netip.ParseAddr(low)
	return err == nil && (a.IsLoopback() || a.IsUnspecified())
}
