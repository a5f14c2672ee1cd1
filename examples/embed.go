// Package examples holds failed runs to try inquest on, one in a folder.
package examples

import "embed"

// FS has the folders with all that is in them.
//
//go:embed */*
var FS embed.FS
