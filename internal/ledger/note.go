package ledger

import (
	"errors"
	"fmt"
	"strings"
)

// MaxNote bounds the text of a note, in bytes.
const MaxNote = 64 << 10

// NoteText is the text of a note as it is kept: valid UTF-8, without blanks around it. The error
// is for one that is empty or longer than MaxNote.
func NoteText(text string) (string, error) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "?"))
	switch {
	case text == "":
		return "", errors.New("the note is empty")
	case len(text) > MaxNote:
		return "", fmt.Errorf("the note is longer than %d bytes", MaxNote)
	}
	return text, nil
}
