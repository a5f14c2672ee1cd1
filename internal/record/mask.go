package record

import (
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/redact"
)

// MaskCommand is argv with its secrets masked: those that have the shape of one, and the values
// of options and variables whose names say that they are secret, with = or in the next
// argument. Such a value is masked as a whole. argv is not changed.
func MaskCommand(argv []string) []string {
	out := make([]string, len(argv))
	login := false
	for i, a := range argv {
		if i > 0 && isTextOption(argv[i-1]) {
			out[i] = redact.Text(a) // a command line of its own
			continue
		}
		out[i] = maskArgument(a)
		if i > 0 && isOption(argv[i-1]) && out[i] != redact.Mask && secretValue(argv[i-1]+" ", a) {
			out[i] = redact.Mask
		}
		// Programs that take a password behind an option that does not say so.
		if login && out[i] == a {
			before := strings.Join(argv[max(0, i-8):i], " ") + " "
			if rest, ok := strings.CutPrefix(redact.Text(before+a), redact.Text(before)); ok && rest != a {
				out[i] = rest
			}
		}
		switch path.Base(a) {
		case "sshpass", "curl", "docker", "podman", "helm":
			login = true
		}
	}
	return out
}

// HasMasked reports whether a secret of argv was masked: what is left of it cannot be run.
func HasMasked(argv []string) bool {
	return slices.ContainsFunc(argv, func(a string) bool { return strings.Contains(a, redact.Mask) })
}

// isOption reports whether a is an option that may have its value in the next argument.
func isOption(a string) bool {
	return len(a) > 1 && a[0] == '-' && !strings.ContainsAny(a, "= \n")
}

// isTextOption reports whether a text to be run stands behind a, as behind sh -c and bash -lc.
func isTextOption(a string) bool {
	return len(a) >= 2 && len(a) <= 5 && a[0] == '-' && a[1] != '-' && a[len(a)-1] == 'c'
}

// maskArgument masks what one argument holds: NAME=value and --name=value, or any text.
func maskArgument(a string) string {
	if name, v, ok := strings.Cut(a, "="); ok && name != "" && !strings.ContainsAny(name, " \n\"'{") && secretValue(name+"=", v) {
		return name + "=" + redact.Mask
	}
	return redact.Text(a)
}

// secretValue reports whether v is a secret because of the name that stands before it. What in v
// would end it in running text does not end it here.
func secretValue(before, v string) bool {
	if v == "" || strings.HasPrefix(v, "$") {
		return false
	}
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("/~._:+<>[]{}|-", r) {
			return r
		}
		return 'x'
	}, v)
	return redact.Text(before+plain) == before+redact.Mask
}
