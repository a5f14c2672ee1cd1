package report

// MediaType is the media type of what is written in a format.
func MediaType(format string) string {
	switch format {
	case "json":
		return "application/json"
	case "sarif":
		return "application/sarif+json"
	case "html":
		return "text/html; charset=utf-8"
	case "markdown":
		return "text/markdown; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}
