package report

import "bytes"

// Began reports whether head, the first bytes of a file, is how a report begins,
// in any format and for any reader.
func Began(head []byte) bool {
	for _, b := range []string{"First  ", "Peak   ", "{\n \"schema\": \"inquest.", "<!DOCTYPE html>\n<html lang=\"en\">"} {
		if bytes.HasPrefix(head, []byte(b)) {
			return true
		}
	}
	return bytes.HasPrefix(head, []byte("# ")) && (bytes.Contains(head, []byte("\n- **First:** ")) || bytes.Contains(head, []byte("\n- **Peak:** ")))
}
