//go:build !unix

package cli

func heardSignals() {}
