package evidence

import (
	"strings"
	"unicode"
)

// MaxHostName is the most bytes that a host name has (RFC 1035).
const MaxHostName = 253

// HostName reports whether s can name a host, a pod or a device of the network:
// letters, digits and the marks of such names, with no blank, nothing that acts in
// a shell and no leading dash, which a command would take for an option. The empty
// name, a host that is not stated, is one.
func HostName(s string) bool {
	if len(s) > MaxHostName || strings.HasPrefix(s, "-") {
		return false
	}
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._:%@/+,=-[]", r) {
			return false
		}
	}
	return true
}
