package incident

// A Boundary is where a command begins to fail.
type Boundary struct {
}
