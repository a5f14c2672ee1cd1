// Package redact masks secrets in text that came from an artifact, before it is
// shown or stored. It recognises credentials by their own shape (vendor
// prefixes, key blocks), by the name they are assigned to, and by the place where
// they stand in a URL, a header or a command. What it masks becomes [masked]; the
// rest of the text stays as it is.
package redact

import (
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

const mask = "[masked]"

// Mask is what stands in the place of a secret.
const Mask = mask

// shapes match a credential by itself, after a character that is not part of a word
// or a low line, an escape that is written out, such as \n, or the choice of a colour.
var shapes = lazyre.New(`(^|[^A-Za-z0-9]|\\[nrtfvbae]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]*m|\[[0-9;]+m)(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{18,}|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|nvapi-[A-Za-z0-9_-]{20,}|pypi-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}|dckr_pat_[A-Za-z0-9_-]{20,})`)

// keyBlock matches a private key between its two lines, or what there is of it.
var keyBlock = lazyre.New(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----)(.*?)(-----END [A-Z ]*PRIVATE KEY-----|$)`)

// webhook matches the secret part of an address to which anybody can post.
var webhook = lazyre.New(`(?i)(hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/)[^\s"'<>\\]+`)

// Pieces of the patterns of named values: an optional quote, which may be escaped
// as in JSON within JSON, and a value: between quotes to the closing one, else to
// a blank, a comma or a bracket.
const (
	quote = `(?:\\*["'])?`
	value = `(\\+"(?:[^"\\]|\\+[^"\\])*\\+"|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s'",)\\]+)`
	named = `api[_-]?key|account[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|password|passwd|passphrase|private[_-]?key|credential|token|pass|pwd`
)

// assigned match name=value, name: value, --name value where the name may say that
// the value is secret; pairs match the name and the value of one setting in two
// fields, as Kubernetes writes an environment.
var (
	assigned = lazyre.New(`(?i)^([A-Za-z0-9_.-]*)(` + named + `)(s?)(` + quote + `\s*[=:]\s*|\s+)` + value)
	pairs    = lazyre.New(`(?i)(\bname` + quote + `\s*[:=]\s*` + quote + `)([A-Za-z0-9_.-]*)(` + named + `)(s?)(` + quote + `,?\s*` + quote + `value` + quote + `\s*[:=]\s*)` + value)
)

// userinfo matches the password in a URL, with or without a user before it.
var userinfo = lazyre.New(`(?i)([a-z][a-z0-9+.-]*://[^/\s:@"']*:)([^\s"'<>]+)@([A-Za-z0-9\[])`)

// port is what follows a host's colon where no password does.
var port = lazyre.New(`^[0-9]{1,5}[/,;:?#)]`)

// userToken matches a token that stands in place of the user in a URL.
var userToken = lazyre.New(`(?i)(https?://)([^\s/:@"'<>?#]{12,})@`)

// cutUserinfo matches a password whose @ was cut off with the rest of the line:
// what follows the colon is more than the digits of a port.
var cutUserinfo = lazyre.New(`(?i)([a-z][a-z0-9+.-]*://[^/\s:@]*:)[0-9]*[^@\s/0-9:\\\]\[…][^@\s/]*$`)

// query matches the parameters that sign a URL or stand for a log-in.
var query = lazyre.New(`(?i)([?&](?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|sig|signature|access_token|auth_token|token|key|api_key|apikey|auth|password|pwd|code)=)[^&\s"'<>\\]+`)

// bearer matches an authorisation header by its scheme, header one by its name.
var (
	bearer = lazyre.New(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}`)
	header = lazyre.New(`(?i)((?:proxy-)?authorization` + quote + `\s*[:=]\s*` + quote + `(?:token|apikey|api-key|digest|negotiate|ntlm|aws4-hmac-sha256|bearer|basic)\s+)[^\s"'\\][^"'\\\n]*`)
	cookie = lazyre.New(`(?i)(cookie` + quote + `\s*:\s*` + quote + `)[A-Za-z0-9_.%-]+=[^"'\\\n]+`)
)

// commands match passwords among the arguments of programs that take one there.
var commands = lazyre.New(`(\bsshpass\s+-p\s*|\bcurl(?:\s[^\n|;]*?)?\s(?:-u|--user|--proxy-user)[\s=]*["']?[^\s:"']+:|\b(?:docker|podman|helm)\s+[^\n|;]*?login\s[^\n|;]*?(?:-p|--password)[\s=]+)("[^"]*"?|'[^']*'?|[^\s"']+)`)

// hints are lower-case pieces of which one stands in every text that has
// something to mask; most lines have none and cost one pass each.
var (
	shapeHints = []string{"hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "akia", "asia", "aiza", "xox", "eyj", "nvapi-", "pypi-", "npm_", "dckr_pat_"}
	hookHints  = []string{"hooks.slack", "webhooks/"}
	hints      = slices.Concat(names[:], shapeHints, hookHints, []string{"://", "bearer", "basic", "authorization", "cookie", "curl", "login", "sig="})
)

// Text returns s with its secrets masked.
func Text(s string) string {
	low := strings.ToLower(s)
	has := func(any ...string) bool {
		for _, h := range any {
			if strings.Contains(low, h) {
				return true
			}
		}
		return false
	}
	if !has(hints...) {
		return s
	}
	if has("private key") {
		s = keyBlock.ReplaceAllString(s, "${1}"+mask+"${3}")
	}
	if has(shapeHints...) {
		s = shapes.ReplaceAllString(s, "${1}"+mask)
	}
	if has(hookHints...) {
		s = webhook.ReplaceAllString(s, "${1}"+mask)
	}
	if has("://") {
		s = urls(s)
	}
	if has("=") && has("&", "?") {
		s = query.ReplaceAllString(s, "${1}"+mask)
	}
	if has("bearer", "basic", "authorization", "cookie") {
		s = bearer.ReplaceAllString(s, "${1} "+mask)
		s = header.ReplaceAllString(s, "${1}"+mask)
		s = cookie.ReplaceAllString(s, "${1}"+mask)
	}
	if has("sshpass", "curl", "login") {
		s = commands.ReplaceAllString(s, "${1}"+mask)
	}
	if !has(names[:]...) {
		return s
	}
	if has("value") {
		s = replace(pairs, s, func(g []string) string {
			if !secret(g[2], g[3], g[4], "=", g[6]) {
				return g[0]
			}
			return g[1] + g[2] + g[3] + g[4] + g[5] + masked(g[6])
		})
	}
	return assignments(s, func(g []string) string {
		if !secret(g[1], g[2], g[3], g[4], g[5]) {
			return g[0]
		}
		return g[1] + g[2] + g[3] + g[4] + masked(g[5])
	})
}

// replace is re.ReplaceAllStringFunc with the groups. A match that stays may hold
// the begin of another one in its value: the search goes on before it.
func replace(re *lazyre.Regexp, s string, fn func(groups []string) string) string {
	var b strings.Builder
	for {
		m := re.FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		g := make([]string, len(m)/2)
		for i := range g {
			if m[2*i] >= 0 {
				g[i] = s[m[2*i]:m[2*i+1]]
			}
		}
		b.WriteString(s[:m[0]])
		end := m[1]
		if out := fn(g); out != g[0] {
			b.WriteString(out)
		} else {
			end = m[len(m)-2] // its value
			b.WriteString(s[m[0]:end])
		}
		s = s[end:]
	}
	return b.String() + s
}

// names are what every word that names a secret holds, in lower case.
var names = [...]string{"key", "secret", "pass", "pwd", "token", "credential"}

// assignments is replace for assigned, which is slow to search a long text for: it is
// tried only where a run of word characters holds one of names. A match that begins
// inside a run begins at its start as well.
func assignments(s string, fn func(groups []string) string) string {
	low := lowered(s)
	var b strings.Builder
	written, from := 0, 0
	var ahead [len(names)]int // where each of names comes next, len(s) where it does not
	for i := range ahead {
		ahead[i] = -1
	}
	for {
		at := len(s)
		for i, n := range names {
			if ahead[i] < from {
				ahead[i] = len(s)
				if j := strings.Index(low[from:], n); j >= 0 {
					ahead[i] = from + j
				}
			}
			at = min(at, ahead[i])
		}
		if at == len(s) {
			return b.String() + s[written:]
		}
		start, run := at, at
		for start > from && wordByte(s[start-1]) {
			start--
		}
		for run < len(s) && wordByte(s[run]) {
			run++
		}
		m := assigned.FindStringSubmatchIndex(s[start:])
		if m == nil {
			from = run
			continue
		}
		g := make([]string, len(m)/2)
		for i := range g {
			if m[2*i] >= 0 {
				g[i] = s[start+m[2*i] : start+m[2*i+1]]
			}
		}
		if out := fn(g); out != g[0] {
			b.WriteString(s[written:start])
			b.WriteString(out)
			written = start + m[1]
			from = written
		} else {
			from = start + m[len(m)-2] // its value
		}
	}
}

// lowered is s in lower case where it is ASCII, byte by byte.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

// urls masks what logs in in the URLs of s.
func urls(s string) string {
	s = userinfo.ReplaceAllStringFunc(s, func(m string) string {
		g := userinfo.FindStringSubmatch(m)
		if port.MatchString(g[2]) {
			return m
		}
		return g[1] + mask + "@" + g[3]
	})
	s = userToken.ReplaceAllStringFunc(s, func(m string) string {
		g := userToken.FindStringSubmatch(m)
		if !random(g[2]) {
			return m
		}
		return g[1] + mask + "@"
	})
	return cutUserinfo.ReplaceAllString(s, "${1}"+mask)
}

// masked is the mask between the quotes of v.
func masked(v string) string {
	open := v[:len(v)-len(strings.TrimLeft(v, `\`))]
	if rest := v[len(open):]; rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		q := v[:len(open)+1]
		if len(v) >= 2*len(q) && strings.HasSuffix(v, q) {
			return q + mask + q
		}
		return q + mask
	}
	return mask
}

// Names of tokens that a text is made of, and of counts of them.
var ofText = lazyre.New(`(?i)(?:^|[_.-])(?:pad|bos|eos|unk|sep|cls|mask|image|video|audio|special|stop|start|end|next|prev|first|last|per|num|max|min|n|new|added|additional|prompt|fim|decoder|sub|word)[_-]?$`)

// Names that say that the token, or the pass, logs in.
var (
	logsIn   = lazyre.New(`(?i)(?:access|auth|api|hf|hub|github|gitlab|gh|git|wandb|session|security|bearer|refresh|id|tracking|registry|vault|bot|slack|secret|user|admin|root|db|database|mysql|pg|postgres|redis|mongo|rabbitmq|smtp|mail|ftp|ssh|sudo|proxy|ldap|login|docker|key|store)[_.-]?$`)
	allUpper = lazyre.New(`^[A-Z0-9_]+_$`)
	plain    = lazyre.New(`^[-+]?[0-9][0-9.,]*(?:e[-+]?[0-9]+)?(?:[a-z/%]{0,8}|[KMGT]i?B?)$`)
)

// secret reports whether the value v that is given, after sep, to the name
// before+kind+plural is a secret.
func secret(before, kind, plural, sep, v string) bool {
	inner := strings.Trim(strings.ReplaceAll(v, `\`, ""), `"'`)
	quoted := len(inner) < len(v)
	if harmless(inner) {
		return false
	}
	option := strings.HasPrefix(before+kind, "-")
	spaced := strings.TrimSpace(sep) == ""
	low := strings.ToLower(kind)
	switch low {
	case "token", "pass", "pwd":
		if plural != "" || spaced && !option || plain.MatchString(inner) {
			return false
		}
	}
	switch low {
	case "token":
		switch {
		case ofText.MatchString(before) || strings.ContainsAny(inner, "<>[]{}|"):
			return false
		case logsIn.MatchString(before) || allUpper.MatchString(before):
			return len(inner) >= 6
		}
		return random(inner)
	case "pass":
		return (logsIn.MatchString(before) || allUpper.MatchString(before)) && len(inner) >= 3
	case "pwd":
		return (before == "" || option || strings.HasSuffix(before, "_")) && len(inner) >= 3 && !strings.ContainsAny(inner[:1], `/~.\`) && !strings.Contains(inner, ":/")
	}
	if spaced && !option && !strings.ContainsAny(inner, "0123456789") {
		return false
	}
	return len(inner) >= 6 || quoted && len(inner) >= 4
}

// random reports whether v is no word: it is long and mixes letters and digits,
// or is longer than words are and mixes their cases.
func random(v string) bool {
	var upper, lower, digit bool
	for _, r := range v {
		switch {
		case r >= '0' && r <= '9':
			digit = true
		case r >= 'a' && r <= 'z':
			lower = true
		case r >= 'A' && r <= 'Z':
			upper = true
		case r <= ' ' || r > '~':
			return false
		}
	}
	return len(v) >= 8 && digit && (upper || lower) || len(v) >= 20 && upper && lower
}

// harmless reports whether a value is a placeholder rather than a secret.
func harmless(v string) bool {
	switch strings.ToLower(strings.Trim(v, "<>[]")) {
	case "", "none", "null", "true", "false", "masked", "unset", "not set", "********":
		return true
	}
	return strings.HasPrefix(v, "$") || strings.HasPrefix(v, mask)
}
