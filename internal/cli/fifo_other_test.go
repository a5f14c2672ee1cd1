//go:build !unix

package cli

var makeFIFO func(name string) error
