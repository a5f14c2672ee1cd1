package reader

import (
	"path"
	"strings"
)

// PlaceOf is the path of an artifact in which an archive is a folder: outer!inner is
// outer/inner.
func PlaceOf(artifact string) string { return strings.ReplaceAll(artifact, "!", "/") }

// BaseOf is the name of an artifact without the folders and archives that it lies in.
func BaseOf(artifact string) string { return path.Base(PlaceOf(artifact)) }

// FolderOf is the folder or archive that an artifact lies in, as reports name it; "." where
// its path names none.
func FolderOf(artifact string) string {
	if i := strings.LastIndexAny(artifact, "/!"); i > 0 {
		return artifact[:i]
	}
	return "."
}
