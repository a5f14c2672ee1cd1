package incident

import "slices"

// CaseSchema is the name and version of a case.
const CaseSchema = "inquest.case/v1"

// States of a case, in the order in which it goes through them.
const (
	CaseReceiving = "receiving" // files are still to come
	CaseWaiting   = "waiting"   // for its turn
	CaseReading   = "reading"
	CaseDone      = "done"
	CaseFailed    = "failed" // nothing of it could be answered; Error says why
	CaseCancelled = "cancelled"
)

// A Case is what was handed over to be diagnosed together, and how far that is. Its result is an
// Incident, asked for apart.
type Case struct {
	Schema string `json:"schema"` // name and version of this format
	ID     string `json:"id"`     // cannot be guessed
	Name   string `json:"name"`   // as people call it
	State  string `json:"state"`  // receiving, waiting, reading, done, failed or cancelled
	Begun  string `json:"begun"`  // UTC, RFC 3339
	// Files are in order of their names: a page of those of one case, none in a list of cases.
	Files     []CaseFile `json:"files"`
	FileCount int        `json:"file_count"` // of all files
	Bytes     int64      `json:"bytes"`      // received, of all files
	// Done of Total artifacts are read; Total is 0 until it is known.
	Done  int `json:"done"`
	Total int `json:"total"`
	// Title, Outcome and Incident are of the result: its headline, how the run ended, the id of
	// the incident; "" before.
	Title    string `json:"title"`
	Outcome  string `json:"outcome"`
	Incident string `json:"incident"`
	Error    string `json:"error"`
	// Limits are what of it was not taken, and why.
	Limits []string `json:"limits"`
}

// A CaseFile is one file of a case, by the name under which it was handed over: relative, with
// slashes, without . and .. elements.
type CaseFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Whole bool   `json:"whole"` // false: the upload ended early
}

// Ended reports whether nothing more will happen to the case.
func (c *Case) Ended() bool {
	return c.State == CaseDone || c.State == CaseFailed || c.State == CaseCancelled
}

// LinesSchema is the name and version of a window into an artifact.
const LinesSchema = "inquest.lines/v1"

// Lines is a window into a text artifact, secrets masked and control characters taken out.
type Lines struct {
	Schema   string `json:"schema"`   // name and version of this format
	Artifact string `json:"artifact"` // as the incident names it
	Kind     string `json:"kind"`     // what it was recognised as
	First    int64  `json:"first"`    // 1-based number of the first line; 0 where the window is empty
	Lines    []Line `json:"lines"`    // in order
	Before   bool   `json:"before"`   // lines come before the window
	After    bool   `json:"after"`    // lines come behind it
	// Limits say what could not be shown: a line that was cut, an artifact that is no text.
	Limits []string `json:"limits"`
}

// A Line is one line of an artifact.
type Line struct {
	N      int64  `json:"n"`      // 1-based
	Offset int64  `json:"offset"` // of its first byte, after decompression; -1 where only evidence of the artifact is at hand
	Text   string `json:"text"`   // printable
	Cut    int64  `json:"cut"`    // bytes of it that are not in Text, 0 where it is whole
	Marked bool   `json:"marked"` // one that was asked for
}

// TimelineSchema is the name and version of a timeline.
const TimelineSchema = "inquest.timeline/v1"

// Roles of an event in a diagnosis.
const (
	RoleFirst     = "first"     // the first fault
	RoleRival     = "rival"     // cannot be ordered against it
	RoleFollowed  = "followed"  // explained by another
	RoleRecovered = "recovered" // survived by later progress
	RoleLastGood  = "last_good"
	RoleOther     = "other"
)

// LastGoodKind is the kind of the event that stands for the last finite value before the first
// fault. No reader finds it: its id begins with g, its text is the value in words, and the line is
// its span's quote.
const LastGoodKind = "last_good"

// Roles are all of them.
var Roles = []string{RoleFirst, RoleRival, RoleFollowed, RoleRecovered, RoleLastGood, RoleOther}

// An EventFilter says which events of a timeline are asked for. What is empty asks for all.
type EventFilter struct {
	Ranks                           []RankRange
	Kinds, Classes, Roles, Attempts []string
}

// A RankRange is the ranks from Low to High, both among them.
type RankRange struct{ Low, High int }

// Keeps reports whether e is asked for. Where ranks are, an event without one is not.
func (f *EventFilter) Keeps(e *TimelineEvent) bool {
	asked := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	return asked(f.Kinds, e.Kind) && asked(f.Classes, e.Class) && asked(f.Roles, e.Role) && asked(f.Attempts, e.Attempt) &&
		(len(f.Ranks) == 0 || e.Rank != nil && slices.ContainsFunc(f.Ranks, func(r RankRange) bool { return r.Low <= *e.Rank && *e.Rank <= r.High }))
}

// A Timeline is what happened in a job, event by event: all attempts in order, in each the order
// that is known. Where two events cannot be ordered, they stand by the times of their lines, if
// those can be compared at all, then by artifact and place.
type Timeline struct {
	Schema   string            `json:"schema"`   // name and version of this format
	Attempts []TimelineAttempt `json:"attempts"` // in order of their starts
	Events   []TimelineEvent   `json:"events"`   // of all attempts, in order
	Total    int               `json:"total"`    // events that there are; more than len(Events) where the bound was reached
	Dropped  map[string]int    `json:"dropped"`  // by kind, those that the bound took out
}

// A TimelineAttempt is one attempt of a timeline, by the id that it has in the incident.
type TimelineAttempt struct {
	ID      string `json:"id"`      // as in the incident
	Outcome string `json:"outcome"` // failed, finished, running, interrupted or unclear
	Ranks   []int  `json:"ranks"`   // that left something, ascending
	Events  int    `json:"events"`  // of the attempt, those that the bound took out included
}

// A TimelineEvent is an event with its place and its part.
type TimelineEvent struct {
	Event
	N    int    `json:"n"`    // 0-based place in the whole timeline
	Role string `json:"role"` // first, rival, followed, recovered, last_good or other
	// Why says why it has its role: the rule that explains it, the basis of being first.
	Why string `json:"why"`
	// Apart is set where the order to the event before it is not known.
	Apart bool `json:"apart"`
}
