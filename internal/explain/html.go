package explain

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"strings"
	"sync"
)

//go:embed assets
var assets embed.FS

// templates write a Page; an embedded template that does not parse is a broken build.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"pieces": Pieces}).ParseFS(assets, "assets/*.html"))
})

// style is the page's style sheet and, as its policy names it, its hash.
var style = sync.OnceValues(func() (css, hash string) {
	data, err := assets.ReadFile("assets/page.css")
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(data)
	return string(data), "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
})

// writeHTML writes p as one page that needs nothing else and allows no request.
func writeHTML(p Page, _ int) string {
	css, hash := style()
	return execute("page", struct {
		Page
		Style     template.CSS
		StyleHash string
	}{p, template.CSS(css), hash})
}

// Fragment writes p as an article to be framed by another page: it is escaped and has
// no style and no script.
func Fragment(p Page) string { return execute("article", p) }

func execute(name string, data any) string {
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, name, data); err != nil {
		panic(err) // the templates are ours, the data strings, and a Builder takes all
	}
	return b.String()
}
