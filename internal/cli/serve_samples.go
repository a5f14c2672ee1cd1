package cli

import (
	"io/fs"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/examples"
	"github.com/inquest-dev/inquest/internal/web"
)

// samples are the folders of examples, each with the heading of its README as its title.
func samples() []web.Sample {
	var out []web.Sample
	folders, _ := fs.ReadDir(examples.FS, ".")
	for _, d := range folders {
		s := web.Sample{Name: d.Name(), Title: d.Name(), Files: map[string]string{}}
		fs.WalkDir(examples.FS, d.Name(), func(name string, f fs.DirEntry, err error) error {
			if err != nil || f.IsDir() {
				return err
			}
			b, err := fs.ReadFile(examples.FS, name)
			if err != nil {
				return err
			}
			if path.Base(name) == "README.md" {
				first, _, _ := strings.Cut(string(b), "\n")
				s.Title = strings.TrimPrefix(first, "# ")
				return nil
			}
			s.Files[name] = string(b)
			return nil
		})
		out = append(out, s)
	}
	return out
}
