package trial

import "github.com/inquest-dev/inquest/internal/incident"

// Judge says in short what came of a trial: how it ended, and what its diagnosis says of why.
// inc may be nil.
func Judge(exit incident.Exit, inc *incident.Incident) incident.TrialVerdict {
	v := incident.TrialVerdict{Result: incident.TrialFailed}
	if exit.Status == 0 && exit.Error == "" {
		v.Result = incident.Passed
	}
	if inc == nil {
		return v
	}
	v.Fingerprint = inc.Fingerprint
	if f := inc.FirstFault; f != nil {
		v.Class, v.Kind, v.Standing = f.Class, f.Kind, inc.FirstFaultStanding
	}
	return v
}
