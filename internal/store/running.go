package store

// An answer that may be missing.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// slack is how long before or after a trial's begin on record its process may have started,
// in seconds: the record is written before the start, and clocks of start times are coarse.
const slack = 15
