package report

import "bytes"

// labels are the first label of each kind of text report with the second one, by which the
// report is known.
var labels = [][2]string{{"Run", "Broke"}, {"Order", "Basis"}, {"Copy", "Did"}, {"Result", "Runs"}, {"Result", "Since"}}

// Began reports whether head, the first bytes of a file, is how a report begins,
// in any format and for any reader.
func Began(head []byte) bool {
	for _, b := range []string{"First  ", "Peak   ", "{\n \"schema\": \"inquest.", "{\n \"$schema\": \"" + sarifSchema, chatBegins, "<!DOCTYPE html>\n<html lang=\"en\">"} {
		if bytes.HasPrefix(head, []byte(b)) {
			return true
		}
	}
	for _, l := range labels {
		if bytes.HasPrefix(head, []byte(pad(l[0], 7))) && bytes.Contains(head, []byte("\n"+pad(l[1], 7))) {
			return true
		}
	}
	if !bytes.HasPrefix(head, []byte("# ")) {
		return false
	}
	for _, l := range []string{"First", "Peak", "Broke", "Basis", "Did", "Result"} {
		if bytes.Contains(head, []byte("\n- **"+l+":** ")) {
			return true
		}
	}
	return false
}
