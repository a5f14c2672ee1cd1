package incident

// TrialsSchema is the name and version of what a series of trials showed.
const TrialsSchema = "inquest.trials/v1"

// Trials is the result of boundary, verify or recheck: the trials that were made, in the
// order in which they were made, and what they show. One of the answers is set.
type Trials struct {
	Schema       string        `json:"schema"`
	Tool         Tool          `json:"tool"`
	ID           string        `json:"id"`       // of the series; each Trial.Series has it
	By           string        `json:"by"`       // boundary, verify, recheck
	Incident     string        `json:"incident"` // "" where none was named
	Template     []string      `json:"template"` // the command, with {NAME} where values are put
	Trials       []Trial       `json:"trials"`   // without samples
	Boundary     *Boundary     `json:"boundary"`
	Verification *Verification `json:"verification"`
	Limits       []string      `json:"limits"`  // what could not be tried, read or decided
	Stopped      string        `json:"stopped"` // why it ended before its end: budget, interrupt, disk; "" where it did not
}
