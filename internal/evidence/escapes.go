package evidence

import "github.com/inquest-dev/inquest/internal/lazyre"

// Escapes matches whole terminal sequences: CSI, OSC and the two-byte ones
// (ECMA-48).
var Escapes = lazyre.New("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])")
