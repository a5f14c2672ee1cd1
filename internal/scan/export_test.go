package scan

// ProgramAtoms returns what inquest looks for. It is set by the tests outside the
// package, which may import what imports it.
var ProgramAtoms func() []Atom
