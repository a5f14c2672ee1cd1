// Package docs holds the published JSON schemas of the results, so that what serves them can
// show them.
package docs

import "embed"

// Schemas are NAME.schema.json of every result.
//
//go:embed *.schema.json
var Schemas embed.FS
