package trial

import (
	"errors"
	"strings"

	"github.com/inquest-dev/inquest/internal/redact"
)

// SplitCommand cuts a command line into words as a shell does: blanks part words, quotes and
// backslashes keep them together. What else a shell would act on (variables, pipes, redirections)
// is refused, because no shell runs the command.
func SplitCommand(line string) ([]string, error) {
	var words []string
	var b strings.Builder
	in, quote := false, rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' && r != '$' && r != '`' {
				b.WriteByte('\\')
			}
			if r != '\n' || quote != 0 {
				b.WriteRune(r)
			}
			escaped = false
		case r == '\\' && quote != '\'':
			in, escaped = true, true
		case quote != 0:
			switch {
			case r == quote:
				quote = 0
			case quote == '"' && (r == '$' || r == '`'):
				return nil, errors.New("it holds something that only a shell can replace; name sh -c '…'")
			default:
				b.WriteRune(r)
			}
		case r == '\'' || r == '"':
			in, quote = true, r
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if in {
				words = append(words, b.String())
				b.Reset()
				in = false
			}
		case strings.ContainsRune("$`|&;<>()", r):
			return nil, errors.New("it holds something that only a shell acts on; name sh -c '…'")
		default:
			in = true
			b.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if in {
		words = append(words, b.String())
	}
	if len(words) == 0 {
		return nil, errors.New("no command")
	}
	return words, nil
}

// CompleteCommand reports whether a command of a remedy has all that it needs: nothing in it
// stands for something that the reader has to put there.
func CompleteCommand(line string) bool {
	return strings.TrimSpace(line) != "" && !strings.ContainsAny(line, "<>…{}") && !strings.Contains(line, "...") && !strings.Contains(line, redact.Mask)
}
