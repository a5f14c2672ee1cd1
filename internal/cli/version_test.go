package cli

import (
	"runtime/debug"
	"testing"
)

func TestCommit(t *testing.T) {
	b := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "da40f65aabbccddeeff00112233"}, {Key: "vcs.modified", Value: "true"}}}
	if got, want := commit(b), " (commit da40f65aabbc, with changes)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := commit(&debug.BuildInfo{}); got != "" {
		t.Errorf("%q without a commit", got)
	}
}
