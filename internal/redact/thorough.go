package redact

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// What Thorough masks beyond Text: shapes of rarer vendors, names of settings that Text leaves
// because reports are about them, and secrets of a command line that is written as a list.
var (
	moreShapes = lazyre.New(`(^|[^A-Za-z0-9]|\\[nrtfvbae]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]*m|\[[0-9;]+m)(?:sk-ant-[A-Za-z0-9_-]{16,}|wandb_v[0-9]+_[A-Za-z0-9_]{16,}|sk_(?:live|test)_[A-Za-z0-9]{16,}|rk_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|hv[sb]\.[A-Za-z0-9_-]{20,}|dapi[0-9a-f]{32}|do[opr]_v1_[0-9a-f]{32,}|ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{16,}|1//0[A-Za-z0-9_-]{30,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|pplx-[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|fw_[A-Za-z0-9]{20,}|tgp_v1_[A-Za-z0-9_-]{20,}|gl(?:rt|dt|cbt|ptt|soat|ft|imt|agent)-[A-Za-z0-9_-]{16,}|xapp-[A-Za-z0-9-]{16,}|xoxe[.-][A-Za-z0-9.-]{16,}|shp(?:at|ca|pa|ss)_[0-9a-f]{32}|sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}|SK[0-9a-f]{32}|key-[0-9a-f]{32}|(?:A3T[A-Z0-9]|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}|NRAK-[A-Z0-9]{20,}|phc_[A-Za-z0-9]{30,}|lin_api_[A-Za-z0-9]{30,}|ATATT3[A-Za-z0-9_=-]{30,}|eyJ[A-Za-z0-9+/_-]{48,}={0,2}|AAAA[BCE][23]NzaC[A-Za-z0-9+/]{20,}={0,3}|PMAK-[A-Za-z0-9-]{30,}|nr_[A-Za-z0-9]{30,}|cio[A-Za-z0-9]{32}|cfut_[A-Za-z0-9_-]{30,})`)
	shapeStart = []string{"sk-", "wandb_v", "sk_", "rk_", "whsec_", "SG.", "hvs.", "hvb.", "dapi", "do", "ya29.", "GOCSPX-", "1//0", "AGE-", "gsk_", "r8_", "pplx-", "xai-", "fw_", "tgp_", "gl", "xapp-", "xoxe", "shp", "sq0", "SK", "key-", "A3T", "ABIA", "ACCA", "AROA", "AIDA", ":AA", "NRAK-", "phc_", "lin_", "ATATT3", "eyJ", "AAAA", "PMAK-", "nr_", "cio", "cfut_"}

	// hooks are addresses to which anybody can post.
	hooks = lazyre.New(`(?i)((?:[a-z0-9-]+\.)?webhook\.office\.com/webhookb2/|api\.telegram\.org/bot|hooks\.zapier\.com/hooks/catch/|open\.feishu\.cn/open-apis/bot/v2/hook/|open\.larksuite\.com/open-apis/bot/v2/hook/|oapi\.dingtalk\.com/robot/send\?access_token=|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|chat\.googleapis\.com/v1/spaces/)[^\s"'<>\\]+`)

	// settings are names, in any case, that say by themselves that their value logs in.
	settings = lazyre.New(`(?i)((?:^|[^A-Za-z0-9])[A-Za-z0-9_.-]*(?:api[._-]?key|private[_-]?key[_-]?id|access[_-]?key(?:_?id)?|shared[_-]?access_?(?:key|signature)|sas[_-]?token|encryption[_-]?key|signing[_-]?key|master[_-]?key|license[_-]?key|deploy[_-]?key|service[_-]?account_?key|client[_-]?secret|refresh[_-]?token|session[_-]?id|csrf[_-]?token|xsrf[_-]?token|webhook(?:_?url)?|connection[_-]?string|conn[_-]?str|sentry[_-]?dsn|dsn|netrc|auth[_-]?key|x-vault-token|x-auth-token|wandb[_-]?key|rdzv[_-]?secret|mfa[_-]?code|auth[_-]?token|access[_-]?token|hf[_-]?token|otp|pin[_-]?code|recovery[_-]?code|passcode|kennwort|passwort|contraseña|mot[_-]?de_?passe)(?:\\*["'])?\s*(?:=>|:=|[=:]|%3[Dd])\s*)(\\+"(?:[^"\\]|\\+[^"\\])*\\+"|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s'",)\\]{4,})`)

	// listed matches an option and its value as two strings of a list, as Python and JSON print
	// a command line.
	listed = lazyre.New(`(?i)(\\*["']--?[a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|auth|wandb[_-]?key)\\*["']\s*,\s*\\*["'])([^"'\\]+)`)

	// loginWith matches a key that is given to a program that logs in.
	loginWith = lazyre.New(`(?i)(\b(?:wandb|huggingface-cli|hf|comet|clearml-init|gh|glab|az|databricks|neptune|swanlab|ngc|modal|aim)\s+(?:auth\s+)?(?:login|configure|token set|config set)\b(?:\s+--?[a-z-]+)*[\s=]+(?:--relogin\s+)?["']?)([A-Za-z0-9_.-]{16,})`)
	netrc     = lazyre.New(`(?i)(\bmachine\s+\S+\s+login\s+\S+\s+password\s+)(\S+)`)
	spoken    = lazyre.New(`(?i)(\b(?:password|passphrase|passcode|token|api key|secret key|secret|one-time code)\b(?:\s+for\s+\S+)?\s+(?:is|was|set to|changed to|=>|->)\s+["'` + "`" + `]?)([^\s"'` + "`" + `,;]{4,})`)
	mysqlArg  = lazyre.New(`(\b(?:mysql|mysqldump|mariadb|mongo|mongosh|redis-cli|ldapsearch|smbclient)\b[^\n|;]*?\s(?:-p|-a\s*|-w\s*|--password[= ]))([^\s-][^\s]*)`)
	awsPair   = lazyre.New(`(?:^|[^A-Za-z0-9+/=])([A-Za-z0-9+/]{40})(?:$|[^A-Za-z0-9+/=])`)
	encoded   = lazyre.New(`(?i)((?:token|password|passwd|secret|api[_-]?key|access[_-]?key|sig|signature)%3D)([^\s&"'<>%]{6,})`)
	hexKey    = lazyre.New(`(?i)((?:wandb|weights|biases|api[ _-]?key|comet|neptune)[^\n]{0,60}?[^A-Za-z0-9])([0-9a-f]{40})(?:$|[^0-9a-f])`)
	pgpBlock  = lazyre.New(`-----BEGIN (?:[A-Z0-9]+ )*(?:PRIVATE KEY|SECRET KEY)(?: BLOCK)?-----|PuTTY-User-Key-File-\d|Private-Lines: \d+`)
	blockEnd  = lazyre.New(`-----END (?:[A-Z0-9]+ )*(?:PRIVATE KEY|SECRET KEY)(?: BLOCK)?-----|Private-MAC:`)
	blockLine = lazyre.New(`(?:[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/]{1,63}={0,2})\s*(?:\\n)?["',]*\s*$`)
	blockHead = lazyre.New(`(?i)(?:Proc-Type|DEK-Info|Comment|Version|Encryption|Public-Lines|Charset):`)
	netrcHint = []string{"machine", "login", "configure", "token set", "config set"}
	namesHint = []string{"key", "sign", "sas", "secret", "token", "session", "webhook", "conn", "dsn", "netrc", "otp", "pin", "code", "wort", "contra", "mot", "password", "passphrase", "credential", "auth"}
)

// Thorough returns one line of text with its secrets masked, Text's and those that only text
// which leaves the machine has to be rid of: what it masks too much harms no report.
func Thorough(line string) string {
	s := Text(line)
	if holds(s, shapeStart) {
		s = moreShapes.ReplaceAllString(s, "${1}"+mask)
	}
	low := strings.ToLower(s)
	if strings.Contains(low, "hook") || strings.Contains(low, "bot") {
		s = hooks.ReplaceAllString(s, "${1}"+mask)
	}
	if strings.Contains(low, "mysql") || strings.Contains(low, "maria") || strings.Contains(low, "mongo") || strings.Contains(low, "redis-cli") || strings.Contains(low, "ldapsearch") || strings.Contains(low, "smbclient") {
		s = mysqlArg.ReplaceAllString(s, "${1}"+mask)
	}
	if holds(low, netrcHint) {
		s = second(netrc, s)
		s = second(loginWith, s)
	}
	if holds(low, namesHint) {
		s = settings.ReplaceAllStringFunc(s, func(m string) string {
			g := settings.FindStringSubmatch(m)
			inner := strings.Trim(strings.ReplaceAll(g[2], `\`, ""), `"'`)
			if harmless(inner) || len(inner) < 4 || plain.MatchString(inner) {
				return m
			}
			return g[1] + masked(g[2])
		})
		s = second(listed, s)
		s = spoken.ReplaceAllStringFunc(s, func(m string) string {
			g := spoken.FindStringSubmatch(m)
			if harmless(g[2]) || !random(g[2]) {
				return m
			}
			return g[1] + mask
		})
		s = second(hexKey, s)
		if strings.Contains(low, "%3d") {
			s = second(encoded, s)
		}
	}
	if strings.Contains(low, "aws") || strings.Contains(low, "secret") || strings.Contains(s, mask) {
		for _, g := range awsPair.FindAllStringSubmatch(s, -1) {
			if random(g[1]) && strings.ContainsAny(g[1], "+/ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strings.Contains(g[1], "//") {
				s = strings.ReplaceAll(s, g[1], mask)
			}
		}
	}
	return s
}

// second masks the second group of each match whose value is no placeholder.
func second(re *lazyre.Regexp, s string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string {
		g := re.FindStringSubmatch(m)
		if harmless(g[2]) {
			return m
		}
		return g[1] + mask + m[len(g[1])+len(g[2]):]
	})
}

func holds(s string, of []string) bool {
	for _, h := range of {
		if strings.Contains(s, h) {
			return true
		}
	}
	return false
}

// taken are the values that masking took out of was, where that can be told from what is left:
// the pieces between the masks stand in was in their order.
func taken(was, now string) []string {
	pieces := strings.Split(now, mask)
	if len(pieces) < 2 || !strings.HasPrefix(was, pieces[0]) {
		return nil
	}
	var out []string
	rest := was[len(pieces[0]):]
	for i, p := range pieces[1:] {
		at := len(rest)
		if i < len(pieces)-2 || p != "" {
			if p == "" {
				return out
			}
			if at = strings.Index(rest, p); at < 0 {
				return out
			}
		}
		out = append(out, rest[:at])
		rest = rest[min(len(rest), at+len(p)):]
	}
	return out
}
