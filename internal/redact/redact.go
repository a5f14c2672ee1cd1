// Package redact masks secrets in text that came from an artifact, before it is
// shown or stored. It recognises credentials by their own shape (vendor
// prefixes) and by the name they are assigned to. What it masks becomes
// [masked]; the rest of the text stays as it is.
package redact

import (
	"regexp"
	"strings"
)

const mask = "[masked]"

// shapes match a credential by itself.
var shapes = regexp.MustCompile(`\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{18,}|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|nvapi-[A-Za-z0-9_-]{20,})`)

// assigned match name=value, name: value, --name value where the name says that
// the value is secret.
var assigned = regexp.MustCompile(`(?i)((?:[A-Za-z0-9]+[_-])*(?:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|password|passwd|access[_-]?token|auth[_-]?token|hf[_-]?token|private[_-]?key|credential)s?)(['"]?\s*[=:]\s*['"]?|\s+)([^\s'",;&)]{6,})`)

// userinfo matches the password in a URL, with or without a user before it.
var userinfo = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://[^/\s:@]*:)[^@\s/]+@`)

// cutUserinfo matches a password whose @ was cut off with the rest of the line:
// what follows the colon is more than the digits of a port.
var cutUserinfo = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://[^/\s:@]*:)[0-9]*[^@\s/0-9:\\\]\[…][^@\s/]*$`)

// bearer matches an authorisation header.
var bearer = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}`)

// hints are lower-case pieces of which one stands in every text that has
// something to mask; most lines have none and cost one pass each.
var hints = []string{"hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "akia", "asia", "aiza", "xox", "eyj", "nvapi-", "key", "secret", "passw", "token", "credential", "://", "bearer", "basic"}

// Text returns s with its secrets masked.
func Text(s string) string {
	low := strings.ToLower(s)
	found := false
	for _, h := range hints {
		if strings.Contains(low, h) {
			found = true
			break
		}
	}
	if !found {
		return s
	}
	s = shapes.ReplaceAllString(s, mask)
	s = userinfo.ReplaceAllString(s, "${1}"+mask+"@")
	s = cutUserinfo.ReplaceAllString(s, "${1}"+mask)
	s = bearer.ReplaceAllString(s, "${1} "+mask)
	return assigned.ReplaceAllStringFunc(s, func(m string) string {
		g := assigned.FindStringSubmatch(m)
		if harmless(g[3]) || g[2] != "" && strings.TrimSpace(g[2]) == "" && !strings.HasPrefix(m, "-") && !strings.ContainsAny(g[3], "0123456789") {
			return m
		}
		return g[1] + g[2] + mask
	})
}

// harmless reports whether a value is a placeholder rather than a secret.
func harmless(v string) bool {
	switch strings.ToLower(strings.Trim(v, "<>[]")) {
	case "none", "null", "true", "false", "masked", "unset", "not set", "********":
		return true
	}
	return strings.HasPrefix(v, "$") || strings.HasPrefix(v, mask)
}
