//go:build !unix

package early

func begin([]string) *Start { return nil }
