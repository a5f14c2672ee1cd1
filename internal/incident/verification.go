package incident

// Verdicts of a verification.
const (
	Verified     = "verified"
	NotVerified  = "not_verified"
	Inconclusive = "inconclusive"
)

// A Verification says whether the original scenario succeeds, again and again.
type Verification struct {
	Verdict string `json:"verdict"`
}
