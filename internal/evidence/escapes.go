package evidence

import "regexp"

// Escapes matches whole terminal sequences: CSI, OSC and the two-byte ones
// (ECMA-48).
var Escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])")
